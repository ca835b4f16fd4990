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

/** A button that copies a text and says so. */
export function CopyButton({ text, children = "Copy" }: { readonly text: string; readonly children?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async () => {
    const done = await copyText(text);
    setSaid(done ? "Copied" : "Not allowed");
    window.setTimeout(() => setSaid(null), 1500);
  };
  return (
    <Button small look="plain" onClick={copy} title={text.length > 300 ? undefined : text}>
      <span aria-live="polite">{said ?? children}</span>
    </Button>
  );
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
