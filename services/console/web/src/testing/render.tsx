import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";

const PATIENCE_MS = 60_000;
const POLL_MS = 5;

/** A rendered page or component, and the actions of a user on it. */
export interface Rendered {
  readonly element: HTMLElement;
  /** The visible text, without repeated spaces. */
  readonly text: () => string;
  /** Wait until the text contains some words. */
  readonly shows: (words: string) => Promise<void>;
  /** The first button, link, tab or switch with this text or label, once there is one. */
  readonly control: (name: string) => Promise<HTMLElement>;
  readonly click: (name: string) => Promise<void>;
  /** Type into the field with this label. */
  readonly type: (label: string, text: string) => Promise<void>;
  readonly unmount: () => void;
}

/** Render into the document. */
export function render(content: ReactNode): Rendered {
  const element = document.createElement("div");
  document.body.append(element);
  const root = createRoot(element);
  root.render(content);
  // Dialogs and menus are outside the element.
  const all = (selector: string) => [...document.body.querySelectorAll<HTMLElement>(selector)];
  const text = () => textOf(document.body);
  const control = (name: string) =>
    eventually(`a control named ${name}`, () => all(CONTROLS).find((one) => nameOf(one) === name));
  return {
    element,
    text,
    control,
    shows: async (words) => {
      await eventually(`"${words}"`, () => text().includes(words) || undefined, text);
    },
    click: async (name) => (await control(name)).click(),
    type: async (label, typed) => {
      const field = await eventually(`a field named ${label}`, () => all("input, textarea").find(isNamed(label)));
      enter(field as HTMLInputElement, typed);
    },
    unmount: () => {
      root.unmount();
      element.remove();
    },
  };
}

/** Wait until `find` returns something. */
export async function eventually<T>(
  what: string,
  find: () => T | undefined,
  context: () => string = () => "",
): Promise<T> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    if (performance.now() > endMs) throw new Error(`waited for ${what}; there is: ${context()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const CONTROLS = "button, a, input[type=checkbox], [role=tab], [role=menuitem], label.check";

function nameOf(element: HTMLElement): string {
  return element.getAttribute("aria-label") ?? textOf(element);
}

function isNamed(label: string) {
  return (element: HTMLElement): boolean => {
    if (element.getAttribute("aria-label") === label) return true;
    const own = element.id === "" ? null : document.querySelector(`label[for="${element.id}"]`);
    return own !== null && textOf(own) === label;
  };
}

/** The text of an element as words, with a space between elements. */
export function textOf(node: Node): string {
  const parts: string[] = [];
  const add = (one: Node) => {
    if (one.nodeType === 3) parts.push(one.textContent ?? "");
    for (const child of one.childNodes) add(child);
  };
  add(node);
  return parts
    .join(" ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ (?=[,.:;)])/g, "")
    .trim();
}

/** React notices a value only when it is set by the element's own setter. */
function enter(field: HTMLInputElement | HTMLTextAreaElement, text: string): void {
  const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value") ?? {};
  set?.call(field, text);
  field.dispatchEvent(new window.Event("input", { bubbles: true }));
}
