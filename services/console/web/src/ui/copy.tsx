import { useState } from "react";
import { Button } from "./button.tsx";
import { Menu } from "./menu.tsx";

/** A command with a button that copies it. */
export function CopyCommand({ text, label = "Command" }: { readonly text: string; readonly label?: string }) {
  return (
    <div className="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a scrollable element. */}
      <section className="grow scrolls" tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </section>
      <CopyButton text={text} />
    </div>
  );
}

/**
 * A button that copies the equivalent CLI command; only an icon on narrow screens. A page has one. If several commands
 * show what the page shows, pass the others as `more`: the button then opens a menu of all.
 */
export function CopyCommandButton({ text, more = [] }: { readonly text: string; readonly more?: readonly string[] }) {
  const [said, copy] = useCopy();
  const content = (
    <>
      <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M2 4l4 4-4 4M8 12h6" fill="none" stroke="currentColor" strokeWidth="1.75" strokeLinecap="round" />
      </svg>
      <span aria-live="polite" className={said === null ? "words" : ""}>
        {said ?? "Copy as command"}
      </span>
    </>
  );
  if (more.length > 0) {
    return (
      <Menu
        look="small plain copy-command"
        items={[text, ...more].map((one) => ({ label: one, onSelect: () => copy(one) }))}
      >
        {content}
      </Menu>
    );
  }
  const title = text.length > 300 ? undefined : text;
  return (
    <Button small look="plain" className="copy-command" onClick={() => copy(text)} title={title}>
      {content}
    </Button>
  );
}

/** A button that copies text and confirms that it was copied. */
export function CopyButton({ text, children = "Copy" }: { readonly text: string; readonly children?: string }) {
  const [said, copy] = useCopy();
  return (
    <Button small look="plain" onClick={() => copy(text)} title={text.length > 300 ? undefined : text}>
      <span aria-live="polite">{said ?? children}</span>
    </Button>
  );
}

/** Copies text. `said` is the confirmation, which is shown for a short time. */
function useCopy(): readonly [said: string | null, copy: (text: string) => Promise<void>] {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async (text: string) => {
    const done = await copyText(text);
    setSaid(done ? "Copied" : "Copy failed");
    window.setTimeout(() => setSaid(null), 1500);
  };
  return [said, copy];
}

/**
 * Copy text. Pages that are served in clear text, except from loopback, have no clipboard, so copy from a selected
 * field instead.
 */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
