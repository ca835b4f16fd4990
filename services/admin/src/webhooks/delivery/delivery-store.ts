import {
  afterCompaction,
  type BlockedSubject,
  type CompactedPlace,
  type PauseReason,
  webhookBehindEvent,
  webhookPausedEvent,
} from "@rollcall/domain";
import type { Logger } from "@rollcall/process";
import {
  compactedRevision,
  type OpenWebhook,
  pauseWebhook,
  type ReservedStore,
  saveDelivery,
  type WebhookPlace,
} from "@rollcall/store";

/** The stored state of one webhook's deliveries: their position, and blocked subjects. */
export class DeliveryStore {
  readonly name: string;
  readonly place: WebhookPlace;
  readonly #store: ReservedStore;
  readonly #log: Logger;
  readonly #fence: { readonly name: string; readonly generation: bigint; readonly logId: string };
  /** Blocked subjects as last written, keyed by subject. */
  #written: ReadonlyMap<string, BlockedSubject> = new Map();
  #saving: Promise<unknown> = Promise.resolve();
  #succeeded = false;
  #failure: string | null = null;
  #lost: { readonly from: bigint; readonly through: bigint } | null = null;

  constructor(store: ReservedStore, log: Logger, { webhook, place, generation }: OpenWebhook, logId: string) {
    this.name = webhook.name;
    this.place = place;
    this.#store = store;
    this.#log = log;
    this.#fence = { name: webhook.name, generation, logId };
    this.#written = new Map(place.blocked.map((one) => [one.subject, { ...one, nextAtMs: 0, notBeforeMs: 0 }]));
  }

  succeeded(): void {
    this.#succeeded = true;
  }

  failed(error: string): void {
    this.#failure = error;
  }

  /** The last compacted revision. */
  compactedRevision(): Promise<bigint> {
    return compactedRevision(this.#store.db);
  }

  /**
   * Find where the webhook continues if events were compacted before they were delivered; null if none were
   * lost. The next save also writes an event about the loss.
   *
   * @param place A null revision checks only the blocked subjects.
   */
  findLost(
    place: { readonly revision: bigint | null; readonly blocked: readonly BlockedSubject[] },
    compacted: bigint,
  ): CompactedPlace | null {
    const after = afterCompaction({ revision: place.revision ?? compacted, blocked: place.blocked }, compacted);
    if (after.lost === null) return null;
    this.#lost = { from: this.#lost?.from ?? after.lost.from, through: after.lost.through };
    const fields = { webhook: this.name, from: `${after.lost.from}`, through: `${after.lost.through}` };
    this.#log.error(fields, "events were compacted before delivery and are lost for the webhook");
    return after;
  }

  /**
   * Save that all events up to a revision have been delivered, except those of blocked subjects. Returns false
   * when the webhook's generation or the log's history has changed. Saves run one at a time.
   */
  save(revision: bigint, blocked: ReadonlyMap<string, BlockedSubject>): Promise<boolean> {
    const saving = this.#saving.then(() => this.#write(revision, blocked));
    // Ignore errors here, because the caller that awaits `saving` handles them.
    this.#saving = saving.catch(() => {});
    return saving;
  }

  async #write(revision: bigint, blocked: ReadonlyMap<string, BlockedSubject>): Promise<boolean> {
    const changed = [...blocked.values()].filter((one) => !isSame(one, this.#written.get(one.subject)));
    const released = [...this.#written.keys()].filter((subject) => !blocked.has(subject));
    const [succeeded, failure, lost] = [this.#succeeded, this.#failure, this.#lost];
    [this.#succeeded, this.#failure, this.#lost] = [false, null, null];
    const isCurrent = await saveDelivery(this.#store, {
      ...{ ...this.#fence, revision, blocked: changed, released, succeeded, failure },
      lost: lost === null ? null : { through: lost.through, event: webhookBehindEvent(this.name, lost) },
    });
    this.#written = blocked;
    return isCurrent;
  }

  /**
   * Pause deliveries, with an event about it. Returns false when the webhook's generation or the log's history
   * has changed.
   */
  pause(reason: PauseReason, message: string): Promise<boolean> {
    const event = webhookPausedEvent(this.name, reason, message);
    return pauseWebhook(this.#store, this.#fence, { reason, message, event });
  }
}

function isSame(one: BlockedSubject, written: BlockedSubject | undefined): boolean {
  return (
    written !== undefined &&
    one.fromRevision === written.fromRevision &&
    one.failures === written.failures &&
    one.error === written.error &&
    one.sinceMs === written.sinceMs
  );
}
