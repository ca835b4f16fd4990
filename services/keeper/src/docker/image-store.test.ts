import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { settle } from "@rollcall/testkit/time";
import type Docker from "dockerode";
import type { DockerEngine, Patience } from "./docker-engine.ts";
import { ImageStore } from "./image-store.ts";

const NAME = "registry.example/web:1";
const FOREVER = new AbortController().signal;
/** A listener for progress. Each execution has its own. */
const listener = () => () => {};

/** An engine that has an image once one of its pulls is complete. */
class PullingEngine {
  readonly pulls: { readonly signal: AbortSignal; readonly stream: PassThrough }[] = [];
  hasImage = false;

  readonly inspect = async () => {
    if (!this.hasImage) throw Object.assign(new Error("no such image"), { statusCode: 404 });
    return { Id: "sha256:1", RepoDigests: [], Config: { User: "" } };
  };

  /** Begin a pull, which ends some time after it is aborted, as that of an engine does. */
  readonly pull = async (_: string, { abortSignal: signal }: { readonly abortSignal: AbortSignal }) => {
    const stream = new PassThrough();
    this.pulls.push({ signal, stream });
    return stream;
  };

  complete(pull: number): void {
    this.hasImage = true;
    this.pulls[pull]?.stream.end("{}");
  }
}

/** An engine of which the image store uses only the client. */
function engineWith(client: Pick<PullingEngine, "inspect" | "pull">): DockerEngine {
  const answering = { pull: client.pull, getImage: () => ({ inspect: client.inspect }) };
  const engine = { client: async (_: Patience) => answering as unknown as Docker };
  return engine as DockerEngine;
}

describe("ImageStore", () => {
  it("should pull an image once for all executions that wait for it, until the last one stops waiting", async () => {
    const engine = new PullingEngine();
    const images = new ImageStore(engineWith(engine));
    const stops = [new AbortController(), new AbortController()] as const;
    const waits = stops.map(({ signal }) =>
      images.ensure(NAME, listener(), signal).catch((reason: Error) => reason.message),
    );
    await settle();
    expect(engine.pulls).toHaveLength(1);
    stops[0].abort(new Error("stopped"));
    await settle();
    expect(engine.pulls[0]?.signal.aborted).toBe(false);
    stops[1].abort(new Error("stopped too"));
    await settle();
    expect(engine.pulls[0]?.signal.aborted).toBe(true);
    expect(await Promise.all(waits)).toEqual(["stopped", "stopped too"]);
  });

  it("should begin another pull for an execution that comes while a cancelled pull is ending", async () => {
    const engine = new PullingEngine();
    const images = new ImageStore(engineWith(engine));
    const stop = new AbortController();
    const stopped = images.ensure(NAME, listener(), stop.signal).catch((reason: Error) => reason.message);
    await settle();
    stop.abort(new Error("stopped"));
    const next = images.ensure(NAME, listener(), FOREVER);
    expect(await stopped).toBe("stopped");
    await settle();
    const third = images.ensure(NAME, listener(), FOREVER);
    await settle();
    expect(engine.pulls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    engine.complete(1);
    expect(await next).toMatchObject({ ok: true });
    expect(await third).toMatchObject({ ok: true });
  });

  it("should find an image after any call of the engine failed once", async () => {
    const calls = await failOnceAtEachCall(
      async (ports) => {
        const engine = new PullingEngine();
        const pull: PullingEngine["pull"] = async (...input) => {
          const stream = await engine.pull(...input);
          engine.complete(engine.pulls.length - 1);
          return stream;
        };
        const images = new ImageStore(engineWith(ports.wrap("engine", { inspect: engine.inspect, pull })));
        const found = await ports.attempt(() => images.ensure(NAME, listener(), FOREVER));
        // A failed pull is the reason why one execution does not start. The next one pulls again.
        expect(found.ok || (await images.ensure(NAME, listener(), FOREVER)).ok).toBe(true);
      },
      { kinds: ["before"] },
    );
    expect(calls).toEqual(["engine.inspect", "engine.pull", "engine.inspect"]);
  });
});
