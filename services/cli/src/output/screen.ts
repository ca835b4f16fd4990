import type { Sink } from "../shell.ts";

const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Shows one frame after the other. */
export interface Screen {
  /** The most lines of a frame; 0 for no limit. */
  rows(): number;
  /** Show a frame instead of the previous one. */
  show(frame: string): void;
  /** Restore the terminal. */
  close(): void;
}

/**
 * Open a screen. On a terminal it redraws in place, on the alternate screen without cursor and line wrapping, so
 * that close() restores the previous contents. Without a terminal, frames follow each other, separated by an empty
 * line.
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
    // Clear each line while drawing it, because clearing the whole screen first would flicker.
    show: (frame) => {
      const lines = frame.trimEnd().split("\n").slice(0, Math.max(1, out.rows()));
      out.write(HOME + lines.map((line) => line + CLEAR_LINE).join("\r\n") + CLEAR_BELOW);
    },
    close: () => out.write(LEAVE),
  };
}
