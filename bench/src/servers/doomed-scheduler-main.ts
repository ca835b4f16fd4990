import { createMetrics, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { createApp, type LeaderStep } from "@rollcall/scheduler";
import { EventFeed, openStore, WorkSignals } from "@rollcall/store";

// Usage: node doomed-scheduler-main.js INSTANCE STEPS MS, with DATABASE_URL: a scheduler that kills itself so many
// steps after it began to lead, and so many milliseconds after that step: 0 for between two steps. STEPS 0: never.
const [instance = "", stepsWord, msWord] = process.argv.slice(2);
const [steps, ms] = [Number(stepsWord), Number(msWord)];
const url = process.env.DATABASE_URL ?? "";
/** A lease that is in doubt on a slow machine costs a reload; one of a dead process is ended by the drill. */
const TIMING = { renewEveryMs: 200, expiryMs: 10_000, pollMs: 100 };

let left = steps;
function afterStep(_step: LeaderStep): void {
  left -= 1;
  if (left !== 0) return;
  // Not between two steps, but in the middle of what comes next.
  if (ms > 0) setTimeout(die, ms);
  else die();
}

/** As kill -9 does: nothing is closed, released or written. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}

const [clock, log, metrics] = [systemClock, silentLogger, createMetrics({ defaults: false })];
const store = await openStore({ url, log, applicationName: instance });
const feed = new EventFeed({ store: store.reserved, clock, log });
const signals = new WorkSignals(feed);
const app = createApp({ store, feed, signals, instance, clock, log, metrics, timing: TIMING, afterStep });
startTasks(app.tasks, { log, clock });
process.on("disconnect", die);
