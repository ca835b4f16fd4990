import { LeaseObserver } from "@rollcall/domain";
import { OtherReplicas } from "./other-replicas.ts";
import type { SimulatedTransition } from "./simulated-record.ts";
import type { SimulatedReplica } from "./simulated-replica.ts";
import type { SimulatedHeld } from "./simulated-stream.ts";
import { LEASE_EXPIRY_MS, RENEW_EVERY_MS } from "./simulation-options.ts";
import type { World } from "./world.ts";

const MOST_A_BATCH = 500;
const ADOPT_EVERY_MS = 2_000;
const BACKOFF_MS = 2_000;
const MOST_READ_MS = 1_000;

interface Written {
  readonly node: SimulatedHeld;
  readonly transition: SimulatedTransition;
}

/** What a replica does with the record: its lease, transitions, adoption, and following the log. */
export class RecordWork {
  readonly #world: World;
  readonly #replica: SimulatedReplica;
  readonly #leases = new LeaseObserver({
    expiryMs: LEASE_EXPIRY_MS,
    maxReadGapMs: 2 * RENEW_EVERY_MS,
  });
  readonly #changed = new Set<SimulatedHeld>();
  readonly #others: OtherReplicas;
  #readRevision: number;
  #isWriting = false;
  #isAdopting = false;
  #isUncertain = false;

  constructor(world: World, replica: SimulatedReplica) {
    this.#world = world;
    this.#replica = replica;
    this.#others = new OtherReplicas(world, replica);
    this.#readRevision = world.record.revision;
  }

  /** Up to where it has read the log. */
  get readRevision(): number {
    return this.#readRevision;
  }

  start(): void {
    this.#renew();
    this.#adoptInTurn();
    this.#others.start();
  }

  /** A node may differ from the record. */
  add(node: SimulatedHeld): void {
    this.#changed.add(node);
    if (!this.#isWriting) this.#write();
  }

  /** The record may say that this replica holds nodes of which it knows nothing. */
  doubt(): void {
    if (this.#world.broken !== "doubt-resolved") this.#isUncertain = true;
  }

  adoptSoon(): void {
    this.#adopt();
  }

  /** Read what is new in the log, if it can be reached. */
  follow(): boolean {
    const { record, network, random } = this.#world;
    if (!network.reachesRecord(this.#replica.slot)) return false;
    // Sometimes later than others.
    if (record.revision === this.#readRevision || random() < 0.5) return true;
    this.#catchUp();
    return true;
  }

  #catchUp(): void {
    const { record } = this.#world;
    const events = record.eventsAfter(this.#readRevision);
    this.#readRevision = record.revision;
    this.#replica.observe(events);
  }

  #renew(): void {
    const { record, schedule } = this.#world;
    const { instance } = this.#replica;
    const startMs = schedule.nowMs;
    this.#replica.time.checkDoubt();
    this.#world.callRecord(
      this.#replica,
      () => ({ wasHeld: record.renew(instance), leases: [...record.leases] }),
      (answer) => {
        if (answer !== null) {
          this.#replica.leaseRenewed(startMs, answer.wasHeld);
          if (schedule.nowMs - startMs <= MOST_READ_MS) this.#observe(answer.leases, startMs);
        }
        schedule.after(startMs + RENEW_EVERY_MS - schedule.nowMs, () => {
          this.#world.deliver(this.#replica, () => this.#renew());
        });
      },
    );
  }

  #observe(leases: readonly (readonly [string, number])[], readMs: number): void {
    const { record } = this.#world;
    const { instance, mayOpen } = this.#replica;
    const others = leases.filter(([id]) => id !== instance);
    const rows = others.map(([id, counter]) => ({ id, counter }));
    for (const id of this.#leases.observe(rows, readMs, mayOpen)) {
      const counter = others.find(([other]) => other === id)?.[1] ?? -1;
      this.#world.callRecord(
        this.#replica,
        () => record.expire(id, counter),
        () => {},
      );
    }
  }

  #adoptInTurn(): void {
    this.#adopt();
    this.#world.schedule.after(ADOPT_EVERY_MS, () => {
      this.#world.deliver(this.#replica, () => this.#adoptInTurn());
    });
  }

  #adopt(): void {
    if (this.#isAdopting || !this.#replica.mayOpen) return;
    this.#isAdopting = true;
    if (this.#isUncertain) this.#recount(() => this.#adoptBatch());
    else this.#adoptBatch();
  }

  #adoptBatch(): void {
    const { record } = this.#world;
    const replica = this.#replica;
    this.#world.callRecord(
      replica,
      () => {
        const { revision } = record;
        return { revision, rows: record.adopt(replica.instance, MOST_A_BATCH) };
      },
      (answer) => {
        this.#isAdopting = false;
        // A commit whose answer was lost has adopted them all the same.
        if (answer === null) this.doubt();
        else {
          replica.adopt(answer.rows, answer.revision);
          for (const { node, from } of answer.rows) this.#others.onAdopted(node, from);
          if (answer.rows.length === MOST_A_BATCH) this.#adopt();
        }
      },
    );
  }

  #recount(then: () => void): void {
    const { record } = this.#world;
    const replica = this.#replica;
    this.#isUncertain = false;
    this.#world.callRecord(
      replica,
      () => ({ revision: record.revision, rows: record.heldBy(replica.instance) }),
      (answer) => {
        const settled = answer?.rows.filter(({ node }) => !replica.isOpening(node));
        if (answer === null || settled === undefined) {
          this.#isUncertain = true;
          this.#isAdopting = false;
          return;
        }
        if (settled.length < answer.rows.length) this.#isUncertain = true;
        replica.adopt(settled, answer.revision);
        then();
      },
    );
  }

  #write(): void {
    const batch = this.#takeBatch();
    if (batch.length === 0) return;
    const { record, schedule, random } = this.#world;
    const replica = this.#replica;
    this.#isWriting = true;
    const transitions = batch.map(({ transition }) => transition);
    this.#world.callRecord(
      replica,
      () => record.write(replica.instance, transitions),
      (held) => {
        if (held !== null && this.#onWritten(batch, held)) {
          this.#isWriting = false;
          if (this.#changed.size > 0) this.#write();
          return;
        }
        for (const { node } of batch) {
          node.isRecordUncertain ||= held === null;
          this.#changed.add(node);
        }
        schedule.after(random() * BACKOFF_MS, () => {
          this.#world.deliver(replica, () => {
            this.#isWriting = false;
            this.#write();
          });
        });
      },
    );
  }

  #takeBatch(): readonly Written[] {
    const batch: Written[] = [];
    for (const node of this.#changed) {
      if (batch.length === MOST_A_BATCH) break;
      this.#changed.delete(node);
      const transition = this.#isHeld(node) ? unwrittenOf(node) : null;
      if (transition !== null) batch.push({ node, transition });
    }
    return batch;
  }

  /** Tells whether the log could be followed, without which nobody is let go of. */
  #onWritten(batch: readonly Written[], held: ReadonlySet<number>): boolean {
    for (const { node, transition } of batch) {
      if (!held.has(node.node) || node.epoch !== transition.epoch) continue;
      node.writtenConnection = transition.connection ?? node.writtenConnection;
      node.writtenHealth = transition.health ?? node.writtenHealth;
      node.isRecordUncertain = false;
      if (unwrittenOf(node) !== null) this.#changed.add(node);
    }
    const others = batch.filter(({ node }) => !held.has(node.node));
    if (others.length === 0) return true;
    if (!this.#world.network.reachesRecord(this.#replica.slot)) return false;
    this.#catchUp();
    for (const { node, transition } of others) {
      if (node.epoch !== transition.epoch || this.#replica.isOpening(node.node)) continue;
      if (this.#isHeld(node)) this.#replica.lose(node);
    }
    return true;
  }

  #isHeld(node: SimulatedHeld): boolean {
    return this.#replica.held.get(node.node) === node;
  }
}

/** What the record lacks of a node; null when it has everything. */
function unwrittenOf(node: SimulatedHeld): SimulatedTransition | null {
  const { health } = node.watch;
  const { isRecordUncertain: isUncertain } = node;
  const connection = isUncertain || node.connection !== node.writtenConnection ? node.connection : null;
  const written = isUncertain || health !== node.writtenHealth ? health : null;
  if (connection === null && written === null) return null;
  return { node: node.node, epoch: node.epoch, connection, health: written };
}
