import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ExecutionSpecSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import { silentLogger, systemClock } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { type CgroupHierarchy, openCgroups } from "../cgroup/cgroup-hierarchy.ts";
import { DockerEngine } from "../docker/docker-engine.ts";
import { DockerExecutor } from "../docker/docker-executor.ts";
import type { Program } from "../execution/executor.ts";
import { type MachineClock, machineClock } from "../execution/keeper-services.ts";
import type { Execution, ExecutionIdentity } from "../journal/execution-entry.ts";
import { Journal } from "../journal/journal.ts";
import { Keeper } from "../keeper.ts";
import { keeperPlaces } from "../keeper-places.ts";
import { probeIsolation } from "../launch/isolation.ts";
import type { WorkRules } from "../launch/permissions.ts";
import { closeInherited } from "../machine/close-inherited.ts";
import { readBootId } from "../machine/process-name.ts";
import type { StreamName } from "../output/output-plan.ts";
import { ProcessExecutor, type ProcessServices } from "../process/process-program.ts";
import { SeenStamp } from "../seen-stamp.ts";
import type { Phase } from "../state/execution-state.ts";
import { UserIds } from "../users/user-ids.ts";

/** A spec as tests write it. */
export type SpecInit = Extract<MessageInitShape<typeof ExecutionSpecSchema>, { readonly $typeName?: never }>;

/** Settings of a keeper under test. */
export interface FixtureOptions {
  readonly rules?: Partial<WorkRules>;
  readonly clock?: MachineClock;
  readonly bootId?: string;
  readonly dockerHost?: string;
  /** Whether to behave like a machine without cgroups and namespaces. Default: use what the machine has. */
  readonly isBare?: boolean;
  /** Whether the keeper can create cgroups if the machine has them. Default: true. */
  readonly hasCgroups?: boolean;
  /** Called before processes are killed and released. An error that it throws simulates a fault of the machine. */
  readonly beforeKill?: () => void;
}

/** Whether this process can run executions as another user. */
export const IS_ROOT = process.getuid?.() === 0;

/** The user of test executions: another user if possible. */
export const TEST_RULES: WorkRules = {
  executors: ["process"],
  user: IS_ROOT ? "nobody" : null,
  userIds: null,
  users: [],
  directories: [],
  secrets: null,
  secretGrants: [],
  closedUserIds: [process.getuid?.() ?? 0],
};

/** A keeper's directory, in which one keeper after the other is opened. */
export class KeeperFixture {
  readonly root: string;
  readonly stateDirectory: string;
  readonly #ids: string[] = [];
  #keeper: Keeper | null = null;
  #cgroups: CgroupHierarchy | null = null;

  private constructor(root: string) {
    this.root = root;
    this.stateDirectory = join(root, "agent");
  }

  static async create(): Promise<KeeperFixture> {
    const root = await mkdtemp(join(tmpdir(), "rollcall-keeper-test-"));
    // Let other users pass through, as in /var/lib.
    await chmod(root, 0o711);
    return new KeeperFixture(root);
  }

  get keeper(): Keeper {
    if (this.#keeper === null) throw new Error("no keeper is open");
    return this.#keeper;
  }

  get cgroups(): CgroupHierarchy | null {
    return this.#cgroups;
  }

  /** Close the previous keeper and open another. */
  async open(options: FixtureOptions = {}): Promise<Keeper> {
    await this.#keeper?.close();
    // Close descriptors, as a keeper in a separate process does.
    closeInherited();
    const places = await keeperPlaces(this.stateDirectory);
    const clock = options.clock ?? machineClock;
    const bootId = options.bootId ?? (await readBootId());
    const journal = await Journal.open(places.directory);
    this.#cgroups = options.isBare === true || options.hasCgroups === false ? null : await openCgroups(places.name);
    const isolation = await probeIsolation();
    const engine = new DockerEngine({ host: options.dockerHost ?? null, log: silentLogger });
    const rules = { ...TEST_RULES, ...options.rules };
    this.#keeper = await Keeper.open({
      journal,
      executors: {
        process: new FaultyExecutor(
          {
            ...{ cgroups: this.#cgroups, rules, scratch: places.scratch },
            isolation: options.isBare === true ? { ...isolation, hasNamespaces: false } : isolation,
            userIds: rules.userIds && (await this.#openUserIds(rules)),
          },
          options.beforeKill ?? (() => {}),
        ),
        docker: new DockerExecutor({ engine, rules, keeper: places.name, clock, log: silentLogger }),
      },
      seen: await SeenStamp.open(places.directory, bootId, clock),
      clock,
      bootId,
      log: silentLogger,
    });
    return this.#keeper;
  }

  async #openUserIds({ userIds, directories }: WorkRules): Promise<UserIds> {
    const [first = 0, last = 0] = userIds ?? [];
    const directory = join(this.root, "user-ids");
    await mkdir(directory, { recursive: true });
    return new UserIds({ first, last, directory, shared: directories, clock: systemClock, log: silentLogger });
  }

  /** Start an execution. Returns its id. */
  async start(spec: SpecInit, identity: Partial<ExecutionIdentity> = {}): Promise<string> {
    const one = identityOf(spec, identity);
    this.#ids.push(one.id);
    await this.keeper.start(one, "log-1");
    return one.id;
  }

  /** Start a shell that runs this script. */
  sh(script: string, spec: SpecInit = {}, identity: Partial<ExecutionIdentity> = {}): Promise<string> {
    const value = { command: ["sh", "-c", script] };
    return this.start({ ...spec, task: { case: "process", value } }, identity);
  }

  record(id: string): Execution {
    const record = this.keeper.records().find(({ identity }) => identity.id === id);
    if (record === undefined) throw new Error(`there is no execution ${id}`);
    return record;
  }

  /** Wait until the execution is in this phase. */
  async phase<K extends Phase["kind"]>(id: string, kind: K): Promise<Extract<Phase, { readonly kind: K }>> {
    await until(`execution ${kind}`, () => this.record(id).state.phase.kind === kind);
    return this.record(id).state.phase as Extract<Phase, { readonly kind: K }>;
  }

  /** All stored output of a stream. */
  async output(id: string, stream: StreamName = "stdout"): Promise<string> {
    let text = "";
    for (let offset = 0; ; ) {
      const piece = await this.keeper.read(id, stream, { from: { kind: "offset", offset }, limitBytes: 65_536 });
      if (piece.data.length === 0) return text;
      text += Buffer.from(piece.data).toString();
      offset = piece.offset + piece.data.length;
    }
  }

  /** Wait until a stream contains these words. */
  async written(id: string, words: string, stream: StreamName = "stdout"): Promise<void> {
    await until(`${stream} with ${words}`, async () => (await this.output(id, stream)).includes(words));
  }

  async #removeCgroups(): Promise<void> {
    for (const root of new Set(Object.values(this.#cgroups?.roots ?? {}))) {
      if (root === null) continue;
      const names = await readdir(root, { withFileTypes: true }).catch(() => []);
      for (const entry of names) if (entry.isDirectory()) await rmdir(join(root, entry.name)).catch(() => {});
      await rmdir(root).catch(() => {});
    }
  }

  /** Stop everything and remove all files. */
  async dispose(): Promise<void> {
    const keeper = this.#keeper ?? (await this.open());
    try {
      for (const { identity, state } of keeper.records()) {
        if (state.phase.kind !== "ended") await keeper.stop(identity, "log-1");
      }
      await until("all ended", () => keeper.records().every(({ state }) => state.phase.kind === "ended"));
    } finally {
      await keeper.close();
      await this.#removeCgroups();
      await rm(this.root, { recursive: true, force: true });
    }
  }
}

/** Runs processes of the machine, and fails to kill them when a test requests it. */
class FaultyExecutor extends ProcessExecutor {
  readonly #beforeKill: () => void;

  constructor(services: ProcessServices, beforeKill: () => void) {
    super(services);
    this.#beforeKill = beforeKill;
  }

  override programOf(context: Parameters<ProcessExecutor["programOf"]>[0]): Program {
    const program = super.programOf(context);
    const [kill, release] = [program.kill.bind(program), program.release.bind(program)];
    program.kill = async () => {
      this.#beforeKill();
      await kill();
    };
    program.release = async () => {
      this.#beforeKill();
      return release();
    };
    return program;
  }
}

/** Identity of an execution, with a new id unless one is given. */
export function identityOf(init: SpecInit, identity: Partial<ExecutionIdentity> = {}): ExecutionIdentity {
  const spec = toBinary(ExecutionSpecSchema, create(ExecutionSpecSchema, { job: "job-1", ...init }));
  return {
    id: `e${randomBytes(12).toString("hex")}`,
    job: "job-1",
    nodeId: "node-1",
    index: 0,
    ports: {},
    gpuUuids: [],
    specDigest: createHash("sha256").update(spec).digest("hex"),
    spec: Buffer.from(spec).toString("base64"),
    ...identity,
  };
}
