import type { Sink } from "../shell.ts";

const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Shows one frame after the other. */
export interface Screen {
  /** How many lines a frame may have; 0 for as many as it likes. */
  rows(): number;
  /** Show a frame in place of the one before. */
  show(frame: string): void;
  /** Give the terminal back as it was. */
  close(): void;
}

/**
 * Redraw in place on a terminal: on its alternate screen, without cursor and line wrapping, so that what stood there
 * before is back after close(). Elsewhere frames follow each other, with an empty line in between.
 */
export function openScreen(out: Sink): Screen {
  if (!out.isTerminal) {
    let first = true;
    return {
      rows: () => 0,
      show: (frame) => {
        out.write(first ? frame : `\n${frame}`);
        first = false;
      },
      close: () => {},
    };
  }
  out.write(ENTER);
  return {
    rows: () => out.rows(),
    // Cleared line by line while it is drawn: a screen cleared at once would flicker.
    show: (frame) => {
      const lines = frame.trimEnd().split("\n").slice(0, Math.max(1, out.rows()));
      out.write(HOME + lines.map((line) => line + CLEAR_LINE).join("\r\n") + CLEAR_BELOW);
    },
    close: () => out.write(LEAVE),
  };
}
