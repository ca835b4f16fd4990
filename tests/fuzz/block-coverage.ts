import { type Profiler, Session } from "node:inspector";

/**
 * Reports which blocks of some files have run since the last call, as counted by V8. Import these files only after
 * this class has started, because V8 counts only functions in code that was compiled before.
 */
export class BlockCoverage {
  readonly #session = new Session();
  readonly #files: readonly string[];

  constructor(files: readonly string[]) {
    this.#files = files;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Return the executed blocks as positions. */
  take(): readonly string[] {
    let scripts: readonly Profiler.ScriptCoverage[] = [];
    // This callback runs before post() returns, because both sides run on this thread.
    this.#session.post("Profiler.takePreciseCoverage", (_error, taken) => {
      scripts = taken.result;
    });
    return scripts
      .filter(({ url }) => this.#files.some((file) => url.endsWith(file)))
      .flatMap(({ url, functions }) =>
        functions.flatMap(({ ranges }) =>
          ranges
            .filter(({ count }) => count > 0)
            .map(({ startOffset, endOffset }) => `${url}:${startOffset}-${endOffset}`),
        ),
      );
  }

  stop(): void {
    this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }
}
