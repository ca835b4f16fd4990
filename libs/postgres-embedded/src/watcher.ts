import { type ChildProcess, spawn } from "node:child_process";
import type { Clock, Logger } from "@rollcall/process";

/** What a watcher is given. */
export interface WatcherOptions {
  readonly dataDirectory: string;
  /** Where it says that it ended a server. */
  readonly logFile: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Before a watcher that was killed is replaced. */
const RESTART_PAUSE_MS = 1_000;

/**
 * $1 is the data directory, $2 the log. Standard input is a pipe from the supervisor: each line is the id of the
 * server's process from now on, or `release`. Its end means that the supervisor is gone. A process is signalled only
 * while its command line names the data directory. Ten seconds are more than a fast shutdown takes on a working disk;
 * after an immediate one the next start recovers what was committed.
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
if runs; then echo "rollcall: the process that ran this server is gone, ending the server" >>"$2"; fi
end INT 10
end QUIT 10
end KILL 1
`;

/**
 * A process of its own that ends the server when this process is gone, however that came about. It hears of it by the
 * end of a pipe, which the system closes even after a SIGKILL.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  readonly #ending = new AbortController();
  #child: ChildProcess | null = null;
  #pid: number | null = null;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** Watch the server that this process id belongs to, in place of the one before. */
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
    // Detached: what is sent to the group of this process, such as an interrupt from the terminal, must not end its
    // watcher too.
    const child = spawn("/bin/sh", ["-c", SCRIPT, "rollcall-postgres-watcher", dataDirectory, logFile], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      cwd: "/",
    });
    this.#child = child;
    child.unref();
    // A watcher that was killed does not read any more; its end is noticed below.
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
    // Rejects only when the server is not to be watched any more.
    await clock.sleep(RESTART_PAUSE_MS, signal).catch(() => {});
    if (!signal.aborted && this.#child === null) this.#start();
  }
}
