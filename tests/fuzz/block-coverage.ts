import { type Profiler, Session } from "node:inspector";

/**
 * Which blocks of some files have run since it was last asked, as V8 itself counts them. The files must be imported
 * after it was started: what was compiled before is counted by function alone.
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

  /** The blocks that have run, by place. */
  take(): readonly string[] {
    let scripts: readonly Profiler.ScriptCoverage[] = [];
    // Answered before post() returns: both sides are this thread.
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
