import { useState } from "react";
import { Button } from "./button.tsx";

/** A command that can be copied. */
export function CopyCommand({ text, label = "Command" }: { readonly text: string; readonly label?: string }) {
  return (
    <div className="copy">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
      <section className="grow scrolls" tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </section>
      <CopyButton text={text} />
    </div>
  );
}

/** A button that copies what does on the command line what is beside it; a sign alone where there is little room. */
export function CopyCommandButton({ text }: { readonly text: string }) {
  const [said, copy] = useCopy(text);
  return (
    <Button small look="plain" className="copy-command" onClick={copy} title={text.length > 300 ? undefined : text}>
      <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M2 4l4 4-4 4M8 12h6" fill="none" stroke="currentColor" strokeWidth="1.75" strokeLinecap="round" />
      </svg>
      <span aria-live="polite" className={said === null ? "words" : ""}>
        {said ?? "Copy as command"}
      </span>
    </Button>
  );
}

/** A button that copies a text and says so. */
export function CopyButton({ text, children = "Copy" }: { readonly text: string; readonly children?: string }) {
  const [said, copy] = useCopy(text);
  return (
    <Button small look="plain" onClick={copy} title={text.length > 300 ? undefined : text}>
      <span aria-live="polite">{said ?? children}</span>
    </Button>
  );
}

/** What to say of a copy that was just made, and how to make one. */
function useCopy(text: string): readonly [said: string | null, copy: () => Promise<void>] {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async () => {
    const done = await copyText(text);
    setSaid(done ? "Copied" : "Not allowed");
    window.setTimeout(() => setSaid(null), 1500);
  };
  return [said, copy];
}

/** Copy a text. The clipboard of a page in clear text off loopback is closed: a selected field serves there. */
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
