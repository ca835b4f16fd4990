import { afterAll, beforeAll } from "@jest/globals";
import { Window } from "happy-dom";

/** Browser objects that the pages and React use. Objects that Node.js has, such as fetch, are not replaced. */
const NAMES = [
  ...["document", "location", "history", "navigator", "localStorage", "sessionStorage", "getComputedStyle"],
  ...["matchMedia", "scrollTo", "requestAnimationFrame", "cancelAnimationFrame", "ResizeObserver", "MutationObserver"],
  ...["Node", "NodeFilter", "Element", "HTMLElement", "HTMLInputElement", "HTMLSelectElement", "SVGElement"],
  ...["HTMLIFrameElement", "HTMLTextAreaElement", "DocumentFragment", "StorageEvent", "CustomEvent"],
];

const dom = new Window({ url: "http://console.test/" });
/** Maximum number of iterations of the event loop that React needs to finish after everything is unmounted. */
const TURNS = 20;

let before = new Map<string, PropertyDescriptor | undefined>();

function install(): void {
  if (before.size > 0) return;
  const set = (name: string, value: unknown) => {
    before.set(name, Object.getOwnPropertyDescriptor(globalThis, name));
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  };
  for (const name of ["window", "self"]) set(name, dom);
  for (const name of NAMES) set(name, (dom as unknown as Readonly<Record<string, unknown>>)[name]);
}

function remove(): void {
  for (const [name, descriptor] of before) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
  before = new Map();
}

// The pages read the browser's objects when they are imported, so install the DOM now. A test file must import this
// file first.
install();
// Test files of one process share modules, and this code runs only for the first of them. So import the pages now,
// while there is a DOM, also for the files that follow.
await import("../app/app.tsx");

/** Install a DOM for the tests of a file, and remove it after them, because other files share the global object. */
export function withDom(): void {
  beforeAll(install);
  afterAll(async () => {
    // Work that React has scheduled still reads the window, so let it finish first.
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await dom.happyDOM.abort();
    remove();
  });
}
