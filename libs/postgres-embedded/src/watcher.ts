import { type ChildProcess, spawn } from "node:child_process";
import type { Clock, Logger } from "@rollcall/process";

export interface WatcherOptions {
  readonly dataDirectory: string;
  /** The file to which the watcher logs that it stopped a server. */
  readonly logFile: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Delay before a killed watcher is replaced, in milliseconds. */
const RESTART_PAUSE_MS = 1_000;

/**
 * $1 is the data directory, $2 the log. Standard input is a pipe from the supervisor; each line is the server's new
 * process id, or `release`. The end of the pipe means that the supervisor is gone. A process is signaled only while
 * its command line names the data directory. A fast shutdown takes less than ten seconds on a working disk. After an
 * immediate shutdown, the next start recovers all committed data.
 */
const SCRIPT = String.raw`
trap '' HUP INT QUIT TERM USR1 USR2 ALRM
pid=
while read -r word; do
  if [ "$word" = release ]; then exit 0; fi
  pid=$word
done
if [ -z "$pid" ]; then exit 0; fi

runs() {
  if [ -r /proc/self/cmdline ]; then
    { tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qxF -e "$data"; } 2>/dev/null
  else
    ps -ww -o command= -p "$pid" | grep -qF -e " $data "
  fi
}
end() {
  if runs; then kill -s "$1" "$pid"; fi
  seconds=0
  while runs && [ "$seconds" -lt "$2" ]; do
    sleep 1
    seconds=$((seconds + 1))
  done
}
data=$1
if runs; then echo "rollcall: the process that ran this server is gone, stopping the server" >>"$2"; fi
end INT 10
end QUIT 10
end KILL 1
`;

/**
 * A separate process that stops the server when this process ends for any reason. The watcher detects this by the
 * end of a pipe, which the system closes even after SIGKILL.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #ending = new AbortController();
  #child: ChildProcess | null = null;
  #pid: number | null = null;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** Watch the server with this process id instead of the previous server. */
  watch(pid: number): void {
    this.#pid = pid;
    if (this.#child === null) this.#start();
    else this.#tell(`${pid}`);
  }

  /** Leave the server running, even when this process ends. */
  release(): void {
    this.#ending.abort(new Error("the watcher is released"));
    this.#tell("release");
    this.#child?.stdin?.end();
  }

  #start(): void {
    const { dataDirectory, logFile } = this.#options;
    // Detach the watcher, so that signals to this process group, such as a terminal interrupt, do not end it.
    const child = spawn("/bin/sh", ["-c", SCRIPT, "rollcall-postgres-watcher", dataDirectory, logFile], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      cwd: "/",
    });
    this.#child = child;
    child.unref();
    // Ignore the error: a killed watcher no longer reads, and its exit is handled below.
    child.stdin?.on("error", () => {});
    child.once("error", (err) => void this.#replace(err));
    child.once("exit", (code, signal) => void this.#replace({ code, signal }));
    if (this.#pid !== null) this.#tell(`${this.#pid}`);
  }

  #tell(word: string): void {
    this.#child?.stdin?.write(`${word}\n`);
  }

  async #replace(why: unknown): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#ending;
    this.#child = null;
    if (signal.aborted) return;
    log.error({ err: why }, "the watcher of postgres ended, starting another");
    // Ignore the rejection, because sleep() rejects only when the server is no longer watched.
    await clock.sleep(RESTART_PAUSE_MS, signal).catch(() => {});
    if (!signal.aborted && this.#child === null) this.#start();
  }
}
