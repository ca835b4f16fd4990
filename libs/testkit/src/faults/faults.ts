/** The error of a call that a test lets fail. */
export class InjectedFault extends Error {
  override readonly name = "InjectedFault";
  /** The code of a system error, so that the code under test treats this error like a real one. */
  readonly code = "EIO";

  constructor(call: string) {
    super(`EIO: the test lets ${call} fail`);
  }
}

/** How a call fails: before it has an effect, or after it, so that only its response is lost. */
export type FaultKind = "before" | "after";

/** How to wrap a port. */
export interface WrapOptions<T> {
  /** Methods that do not return a promise. Their failures are thrown at once. */
  readonly sync?: readonly (keyof T)[];
  /** Methods whose results are ports too, such as the open() of a file system. */
  readonly opens?: readonly (keyof T)[];
  /** Methods that are not recorded and never fail. */
  readonly except?: readonly (keyof T)[];
}

/** Wraps the ports of one run of a scenario. */
export interface Ports {
  /** Wrap a port. Its calls are recorded, and the call selected for this run fails, or stops the program. */
  wrap<T extends object>(name: string, port: T, options?: WrapOptions<T>): T;
  /**
   * Run an action, and try again after an injected failure, like a client that gets no response. Rethrows any other
   * failure.
   */
  attempt<T>(action: () => Promise<T>): Promise<T>;
  /** The call that fails in this run; null in the first run, and until that call is made. */
  readonly failed: string | null;
  /** Called after the program was stopped, to close what it left open. Its ports no longer have an effect. */
  onStop(close: () => Promise<void> | void): void;
}

/** The maximum number of recorded calls. A scenario with more calls is too long to be repeated for each of them. */
const MOST_CALLS = 400;

type Plan =
  | { readonly kind: "none" }
  | { readonly kind: FaultKind; readonly call: number; readonly times: number }
  | { readonly kind: "stop"; readonly call: number };

class Run implements Ports {
  readonly calls: string[] = [];
  /** Resolves when the program is stopped. */
  readonly stopped: Promise<void>;
  failed: string | null = null;
  readonly #plan: Plan;
  readonly #closers: (() => Promise<void> | void)[] = [];
  #failures = 0;
  #isStopped = false;
  #stop: () => void = () => {};

  constructor(plan: Plan) {
    this.#plan = plan;
    this.stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
  }

  wrap<T extends object>(name: string, port: T, options: WrapOptions<T> = {}): T {
    const { sync = [], opens = [], except = [] } = options;
    return new Proxy(port, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target);
        if (typeof found !== "function") return found;
        const method = key as keyof T;
        // Call the method on the port itself, because a proxy has no private fields.
        if (except.includes(method)) return found.bind(target);
        const call = `${name}.${String(key)}`;
        if (sync.includes(method)) return (...input: unknown[]) => this.#sync(call, () => found.apply(target, input));
        return async (...input: unknown[]) => {
          const result: unknown = await this.#async(call, async () => found.apply(target, input));
          const isPort = opens.includes(method) && typeof result === "object" && result !== null;
          return isPort ? this.wrap(call, result) : result;
        };
      },
    });
  }

  async attempt<T>(action: () => Promise<T>): Promise<T> {
    for (;;) {
      const before = this.#failures;
      try {
        return await action();
      } catch (error) {
        if (this.#failures === before) throw error;
      }
    }
  }

  onStop(close: () => Promise<void> | void): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
  }

  #sync(call: string, perform: () => unknown): unknown {
    const kind = this.#begin(call);
    if (kind !== "before") {
      const result = perform();
      if (kind === null) return result;
    }
    throw new InjectedFault(call);
  }

  async #async(call: string, perform: () => Promise<unknown>): Promise<unknown> {
    const kind = this.#begin(call);
    if (kind !== "before") {
      const result = await perform();
      if (kind === null) return result;
    }
    throw new InjectedFault(call);
  }

  /** Record a call. Returns how it fails; null if it does not. */
  #begin(call: string): FaultKind | null {
    if (this.#isStopped) throw new Error(`${call} of a program that was stopped`);
    const index = this.calls.push(call) - 1;
    const plan = this.#plan;
    if (plan.kind === "none" || index < plan.call) return null;
    if (plan.kind !== "stop") {
      if (index >= plan.call + plan.times) return null;
      this.failed ??= call;
      this.#failures += 1;
      return plan.kind;
    }
    this.failed = call;
    this.#isStopped = true;
    this.#stop();
    throw new Error(`the program was stopped before ${call}`);
  }
}

/** How to repeat a scenario. */
export interface FailOptions {
  /** How calls fail. Default: once before and once after each call. */
  readonly kinds?: readonly FaultKind[];
  /** Number of consecutive calls that fail. Default 1. Use more for code that repeats a failed call immediately. */
  readonly times?: number;
}

/**
 * Run a scenario once without a failure and record the calls of its ports. Then repeat it for each call and fail that
 * call once. The scenario creates everything that it uses, and checks that earlier promises still hold after a failure
 * and that the next attempt succeeds. Returns the recorded calls.
 */
export async function failOnceAtEachCall(
  scenario: (ports: Ports) => Promise<void>,
  { kinds = ["before", "after"], times = 1 }: FailOptions = {},
): Promise<readonly string[]> {
  const recorded = new Run({ kind: "none" });
  await scenario(recorded);
  check(recorded.calls);
  for (const [call, name] of recorded.calls.entries()) {
    for (const kind of kinds) {
      const run = new Run({ kind, call, times });
      const where = `call ${call} (${name}) failed ${kind} its effect`;
      await explained(where, () => scenario(run));
      if (run.failed === null) throw new Error(`no call of the repeated scenario failed: ${where}`);
    }
  }
  return recorded.calls;
}

/** A program that can be stopped at any moment, such as by kill -9, and is started again from what is on disk. */
export interface Lives<World> {
  /** Create what outlives the program, such as a disk and the processes of the machine. */
  readonly world: () => Promise<World>;
  /** Start the program, and let it work until it is done. Also called to start it again after a stop. */
  readonly life: (world: World, ports: Ports) => Promise<void>;
  /** Check the promises after the last life. */
  readonly check: (world: World) => Promise<void> | void;
}

/**
 * Run a program once and record the calls of its ports. Then, for each call, run it in a new world, stop it just before
 * that call, and start it again. Returns the recorded calls.
 */
export async function stopAtEachCall<World>({
  world,
  life,
  check: checkWorld,
}: Lives<World>): Promise<readonly string[]> {
  const recorded = new Run({ kind: "none" });
  const first = await world();
  await life(first, recorded);
  await checkWorld(first);
  check(recorded.calls);
  for (const [call, name] of recorded.calls.entries()) {
    await explained(`the program was stopped before call ${call} (${name})`, async () => {
      const run = new Run({ kind: "stop", call });
      const each = await world();
      // Ignore the error of a stopped program.
      const ended = life(each, run).catch((error: unknown) => {
        if (run.failed === null) throw error;
      });
      await Promise.race([run.stopped, ended]);
      if (run.failed === null) throw new Error("the program made no such call when it was run again");
      await run.close();
      await life(each, new Run({ kind: "none" }));
      await checkWorld(each);
    });
  }
  return recorded.calls;
}

function check(calls: readonly string[]): void {
  if (calls.length === 0) throw new Error("the scenario called no port");
  if (calls.length > MOST_CALLS) throw new Error(`the scenario made ${calls.length} calls, at most ${MOST_CALLS}`);
}

async function explained(where: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${where}: ${message}`, { cause: error });
  }
}
