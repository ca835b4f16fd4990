import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { ConfigurationError, errorOf, TimedOutError } from "./errors.ts";
import { waitBeforeOpening } from "./event-watch.ts";
import type { Node } from "./gen/rollcall/node/v1/node_pb.ts";
import type { WatchNodesRequestSchema } from "./gen/rollcall/registry/v1/registry_pb.ts";
import { type NodeChange, NodeView } from "./node-view.ts";
import type { Services } from "./services.ts";
import { untilSilent } from "./stream.ts";
import { pause } from "./time.ts";

/** Which nodes a cache keeps, and which function it notifies. */
export interface NodeCacheOptions {
  /** The filters of the nodes. The request's starting point is ignored. Default: all nodes. */
  readonly request?: MessageInitShape<typeof WatchNodesRequestSchema>;
  /** Called for every change, in order. If it throws, the cache ends. */
  readonly onChange?: (change: NodeChange) => void;
}

const PAUSE_MS = 100;

/**
 * Keeps the nodes that match a request in memory and up to date. It lists them, then watches for changes. The cache
 * survives restarts of the control plane. A failure that a retry cannot fix ends the cache. After that, every method
 * throws this failure.
 */
export class NodeCache {
  readonly #services: Pick<Services, "registry">;
  readonly #view: NodeView;
  readonly #onChange: (change: NodeChange) => void;
  readonly #ending = new AbortController();
  readonly #waiting = new Set<() => void>();
  #failure: { readonly cause: unknown } | null = null;

  constructor(services: Pick<Services, "registry">, { request = {}, onChange = () => {} }: NodeCacheOptions = {}) {
    this.#services = services;
    this.#view = new NodeView(request);
    this.#onChange = onChange;
    this.#follow().catch((cause: unknown) => {
      // Fail, so that nodes that the cache no longer follows are not mistaken for current ones.
      this.#failure = { cause };
      this.#wake();
    });
  }

  /** Wait until every node is known. Rejects with RollcallError, or with TimedOutError after `timeoutMs`. */
  async synced(timeoutMs = 30_000): Promise<void> {
    const endsAtMs = performance.now() + timeoutMs;
    while (!this.#view.isSynced) {
      this.#throwFailure();
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) {
        const message = `the nodes did not arrive within ${timeoutMs} ms`;
        throw new TimedOutError({ code: Code.DeadlineExceeded, message });
      }
      await this.#changed(leftMs);
    }
    this.#throwFailure();
  }

  /** The node with this id; undefined if there is none. */
  get(id: string): Node | undefined {
    this.#throwFailure();
    return this.#view.nodes.get(id);
  }

  /** All nodes, in no particular order. */
  list(): readonly Node[] {
    this.#throwFailure();
    return [...this.#view.nodes.values()];
  }

  /** Stop following. The cache keeps its current nodes, and `onChange` is not called again. */
  close(): void {
    this.#ending.abort();
    this.#wake();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ending;
    let breaks = 0;
    while (!signal.aborted) {
      let waitMs: number | null = PAUSE_MS;
      const open = (until: AbortSignal) =>
        this.#services.registry.watchNodes(this.#view.nextRequest(), { signal: until });
      const messages = untilSilent(open, signal);
      try {
        for (;;) {
          const next = await messages.next();
          if (signal.aborted) return;
          if (next.done) break;
          breaks = 0;
          this.#take(this.#view.apply(next.value));
        }
        breaks += 1;
      } catch (cause) {
        if (signal.aborted) return;
        if (cause instanceof ListenerError) throw cause.cause;
        const failure = errorOf(cause);
        breaks += 1;
        const isMended = !(failure instanceof ConfigurationError) && this.#view.failed(failure);
        waitMs = isMended ? PAUSE_MS : waitBeforeOpening(failure, breaks);
        if (waitMs === null) throw failure;
      } finally {
        await messages.return();
      }
      await pause(waitMs, signal);
    }
  }

  #take(changes: readonly NodeChange[]): void {
    this.#wake();
    try {
      for (const change of changes) {
        if (this.#ending.signal.aborted) return;
        this.#onChange(change);
      }
    } catch (cause) {
      throw new ListenerError("a listener failed", { cause });
    }
  }

  #changed(limitMs: number): Promise<void> {
    const waking = new AbortController();
    const wake = () => waking.abort();
    this.#waiting.add(wake);
    return pause(limitMs, waking.signal).finally(() => this.#waiting.delete(wake));
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.cause;
  }
}

class ListenerError extends Error {}
