import type { Readable } from "node:stream";
import { type DockerEngine, messageOf, orNull } from "./docker-engine.ts";
import { progressOf } from "./pull-progress.ts";

/** An image of the engine. */
export interface Image {
  readonly id: string;
  /** The image's name with its digest, or its id if it did not come from a registry. */
  readonly digest: string;
  /** The user that the image runs as if its job names none; empty for root. */
  readonly user: string;
}

/** An image, or why there is none. */
export type FoundImage =
  | { readonly ok: true; readonly image: Image }
  | { readonly ok: false; readonly problem: string };

interface Pull {
  readonly done: Promise<void>;
  readonly ending: AbortController;
  readonly listeners: Set<(message: string) => void>;
}

/** The time limit of a pull in milliseconds, which is enough for an image of 20 GB at 25 MB/s. */
const PULL_LIMIT_MS = 900_000;

/** Provides the images that executions need. Executions that wait for the same image share one pull. */
export class ImageStore {
  readonly #engine: DockerEngine;
  readonly #pulls = new Map<string, Pull>();

  constructor(engine: DockerEngine) {
    this.#engine = engine;
  }

  /**
   * Find an image, and pull it if it is missing. `onProgress` receives the progress as text. Rejects when the engine
   * does not respond, and when the signal aborts.
   */
  async ensure(name: string, onProgress: (message: string) => void, signal: AbortSignal): Promise<FoundImage> {
    const found = await this.#find(name);
    if (found !== null) return { ok: true, image: found };
    try {
      await this.#pull(name, onProgress, signal);
    } catch (error) {
      signal.throwIfAborted();
      return { ok: false, problem: `image ${name} cannot be pulled: ${messageOf(error)}` };
    }
    const image = await this.#find(name);
    return image === null
      ? { ok: false, problem: `image ${name} was pulled but cannot be found` }
      : { ok: true, image };
  }

  async #find(name: string): Promise<Image | null> {
    const client = await this.#engine.client("quick");
    const found = await orNull(client.getImage(name).inspect());
    if (found === null) return null;
    const digest = digestOf(name, found.Id, found.RepoDigests ?? []);
    return { id: found.Id, digest, user: found.Config?.User ?? "" };
  }

  async #pull(name: string, onProgress: (message: string) => void, signal: AbortSignal): Promise<void> {
    const pull = this.#pulls.get(name) ?? this.#begin(name);
    pull.listeners.add(onProgress);
    onProgress(`pulling image ${name}`);
    let onAbort = (): void => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
    try {
      await Promise.race([pull.done, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      pull.listeners.delete(onProgress);
      // No other execution waits for this image, so cancel the pull. An execution that needs the image from now on
      // begins another pull, even while this one is ending.
      if (pull.listeners.size === 0) {
        this.#forget(name, pull);
        pull.ending.abort(new Error("no execution is waiting for it"));
      }
    }
  }

  #begin(name: string): Pull {
    const ending = new AbortController();
    const listeners = new Set<(message: string) => void>();
    const late = setTimeout(() => {
      ending.abort(new Error(`the pull took longer than ${PULL_LIMIT_MS / 60_000} minutes`));
    }, PULL_LIMIT_MS);
    const done = this.#run(name, ending.signal, (message) => {
      for (const listener of listeners) listener(message);
    }).finally(() => {
      clearTimeout(late);
      this.#forget(name, pull);
    });
    done.catch(() => {});
    const pull: Pull = { done, ending, listeners };
    this.#pulls.set(name, pull);
    return pull;
  }

  #forget(name: string, pull: Pull): void {
    if (this.#pulls.get(name) === pull) this.#pulls.delete(name);
  }

  async #run(name: string, signal: AbortSignal, tell: (message: string) => void): Promise<void> {
    const client = await this.#engine.client("endless");
    const stream = (await client.pull(name, { abortSignal: signal })) as Readable;
    const onAbort = (): void => void stream.destroy(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      for await (const words of progressOf(stream)) tell(`pulling image ${name}${words}`);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    signal.throwIfAborted();
  }
}

/** The name of an image with its digest. A name with a tag gets the digest from its repository. */
function digestOf(name: string, id: string, digests: readonly string[]): string {
  const at = name.indexOf("@sha256:");
  if (at >= 0) return name;
  const repository = name.replace(/:[^/:]*$/, "");
  const own = digests.find((one) => {
    const [of = ""] = one.split("@");
    return of === repository || of.endsWith(`/${repository}`);
  });
  return own ?? digests[0] ?? id;
}
