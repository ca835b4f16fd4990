import { mkdtempSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { MethodCaller, PolicyTable } from "../../libs/rpc/src/index.ts";
import { createTestDatabase, until } from "../../libs/testkit/src/index.ts";
import { POLICIES as ADMIN } from "../../services/admin/src/routes.ts";
import { POLICIES as CONSOLE } from "../../services/console/src/routes.ts";
import { INTERNAL_POLICIES } from "../../services/health/src/internal/routes.ts";
import { POLICIES as HEALTH } from "../../services/health/src/routes.ts";
import { POLICIES as REGISTRY } from "../../services/registry/src/routes.ts";
import { freePorts } from "../../services/rollcall/src/testing/free-ports.ts";
import { RollcallProcess } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { POLICIES as SCHEDULER } from "../../services/scheduler/src/routes.ts";
import { Fleet, gather } from "./fleet.ts";
import { type Answer, Sender } from "./send.ts";
import { servedMethods } from "./served.ts";
import type { Live } from "./taste.ts";

/** A method, the port that serves it, and who can call it. */
export interface Target {
  readonly method: DescMethod;
  readonly port: "api" | "agents" | "internal";
  readonly caller: MethodCaller;
}

const POLICIES: PolicyTable = { ...REGISTRY, ...HEALTH, ...ADMIN, ...SCHEDULER, ...CONSOLE, ...INTERNAL_POLICIES };

/**
 * Settings of the control plane. The fuzzer acts as a trusted proxy, because otherwise the limits of a single address
 * would end its connections.
 */
const SETTINGS = ["--set", "Up.Agent=false", "--set", "Listen.TrustedProxies=127.0.0.1"];

/** A real process of the complete control plane, with all its services, on a real Postgres. */
export class FuzzTarget {
  readonly fleet: Fleet;
  readonly targets: readonly Target[];
  readonly senders: Readonly<Record<Target["port"], Sender>>;
  /** For example "http://127.0.0.1:7700". */
  readonly origins: Readonly<Record<Target["port"], string>>;
  readonly #process: RollcallProcess;
  readonly #close: () => Promise<void>;
  #readOut = 0;

  private constructor(
    parts: Pick<FuzzTarget, "fleet" | "targets" | "senders" | "origins">,
    process: RollcallProcess,
    close: () => Promise<void>,
  ) {
    this.fleet = parts.fleet;
    this.targets = parts.targets;
    this.senders = parts.senders;
    this.origins = parts.origins;
    this.#process = process;
    this.#close = close;
  }

  static async start(): Promise<FuzzTarget> {
    const database = await createTestDatabase();
    const root = mkdtempSync(join(realpathSync(tmpdir()), "rollcall-fuzz-"));
    const [api = 0, agents = 0, internal = 0, probes = 0] = await freePorts(4);
    const ports = {
      port: api,
      "agent-port": agents,
      "internal-port": internal,
      "probe-port": probes,
    };
    const flags = Object.entries(ports).flatMap(([name, port]) => [`--${name}`, String(port)]);
    const started = new RollcallProcess(["up", "--data-dir", root, ...flags, ...SETTINGS, "--log-level", "warn"], {
      DATABASE_URL: database.url,
    });
    await until("the control plane to be ready", async () => {
      const { ok } = await fetch(`http://127.0.0.1:${probes}/readyz`);
      return ok;
    });
    const origin = (port: number) => `http://127.0.0.1:${port}`;
    const origins = { api: origin(api), agents: origin(agents), internal: origin(internal) };
    const senders = {
      api: new Sender(origins.api),
      agents: new Sender(origins.agents),
      internal: new Sender(origins.internal),
    };
    const targets = await Promise.all(
      (["api", "agents", "internal"] as const).map(async (port) =>
        (await servedMethods(senders[port])).map((method) => ({
          method,
          port,
          caller: POLICIES[`${method.parent.typeName}/${method.name}`]?.caller ?? "anyone",
        })),
      ),
    );
    const fleet = new Fleet(database.store);
    const parts = { fleet, senders, targets: targets.flat(), origins };
    return new FuzzTarget(parts, started, async () => {
      for (const sender of Object.values(senders)) sender.close();
      await started.killed();
      await database.drop();
      await rm(root, { recursive: true, force: true });
    });
  }

  /** Restore everything that calls are about. Returns the existing values. */
  async beginRound(round: number): Promise<Live> {
    await this.fleet.restore(round);
    const reads = this.targets.filter(isRead);
    const answers: unknown[] = [];
    for (const { method } of reads) answers.push(parsed(await this.#read(method)));
    return gather(answers);
  }

  /** Return the first bad line that the process has logged since the last call; null if there is none. */
  complaint(): string | null {
    if (!isAlive(this.#process)) return `the process ended: ${this.#process.err}`;
    const said = this.#process.out.slice(this.#readOut);
    this.#readOut = this.#process.out.length;
    return said.split("\n").find((line) => BAD_LINE.test(line)) ?? null;
  }

  async close(): Promise<void> {
    await this.#close();
  }

  /** Call a method as an administrator, with the fields that most methods need. */
  #read(method: DescMethod): Promise<Answer> {
    const has = (name: string) => method.input.fields.some((field) => field.name === name);
    const body = {
      ...(has("node") ? { node: "fuzz-0" } : {}),
      ...(has("page_size") ? { pageSize: 2 } : {}),
    };
    return this.senders.api.send({
      protocol: "connect-json",
      http: 2,
      verb: "POST",
      path: `/${method.parent.typeName}/${method.name}`,
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${this.fleet.token("admin")}`,
      },
      body: Buffer.from(JSON.stringify(body)),
      isStream: false,
    });
  }
}

/** Matches errors, and warnings that indicate a mistake in the program. */
const BAD_LINE =
  /"level":"(?:error|fatal)"|TypeError|RangeError|ReferenceError|SyntaxError|invalid input syntax|invalid byte sequence|unhandled/;

function isAlive({ pid }: RollcallProcess): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // Ignore the error, because the process no longer exists.
    return false;
  }
}

function isRead({ method, port, caller }: Target): boolean {
  const isQuiet = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const byRole = caller === "viewer" || caller === "operator" || caller === "admin";
  return isQuiet && byRole && port === "api" && method.methodKind === "unary";
}

function parsed({ body }: Answer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    // Ignore the body of an HTTP error, because it contains no values.
    return null;
  }
}
