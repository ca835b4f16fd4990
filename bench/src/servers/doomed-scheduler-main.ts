import { createMetrics, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { createApp, type LeaderStep } from "@rollcall/scheduler";
import { EventFeed, openStore, WorkSignals } from "@rollcall/store";

// Usage: node doomed-scheduler-main.js INSTANCE STEPS MS, with DATABASE_URL set. Runs a scheduler that kills
// itself MS milliseconds after its STEPS-th step as the leader. If MS is 0, it dies between two steps. If
// STEPS is 0, it never dies.
const [instance = "", stepsWord, msWord] = process.argv.slice(2);
const [steps, ms] = [Number(stepsWord), Number(msWord)];
const url = process.env.DATABASE_URL ?? "";
/**
 * The timing of the lease. A lease that becomes doubtful on a slow machine costs only a reload. The drill ends
 * the lease of a dead process.
 */
const TIMING = { renewEveryMs: 200, expiryMs: 10_000, pollMs: 100 };

let left = steps;
function afterStep(_step: LeaderStep): void {
  left -= 1;
  if (left !== 0) return;
  // Die in the middle of the next step instead of between two steps.
  if (ms > 0) setTimeout(die, ms);
  else die();
}

/** Die as if by kill -9, so that nothing is closed, released or written. */
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
