import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { openScreen } from "./screen.ts";
import { formatTime } from "./units.ts";

/** Draws the current state in at most `rows` lines; 0 means no limit. */
export type Draw = (rows: number) => Promise<string>;

/** The interval and the number of frames. */
export interface Redrawing {
  readonly intervalMs: number;
  /** The number of frames. */
  readonly count: number;
}

/**
 * Draw one frame after the other, until Ctrl-C. A terminal shows the frames in place. An outage of the control
 * plane is shown, and drawing continues after the outage.
 */
export async function redraw(shell: Shell, draw: Draw, { intervalMs, count }: Redrawing): Promise<void> {
  // Draw once before the screen is opened, so that a mistyped name or address is an ordinary failure.
  let body = await draw(shell.out.rows());
  const screen = openScreen(shell.out);
  try {
    for (let drawn = 1; ; drawn++) {
      screen.show(`${formatTime(shell.wallMs())}  every ${intervalMs / 1000}s\n\n${body}`);
      if (drawn >= count) return;
      await sleep(intervalMs, undefined, { signal: shell.interrupted });
      body = await draw(screen.rows()).catch((error: unknown) => {
        if (error instanceof Failure && !shell.interrupted.aborted) return `${error.message}\n`;
        throw error;
      });
    }
  } finally {
    screen.close();
  }
}
