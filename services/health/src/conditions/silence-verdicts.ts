import { type Due, type SilenceEvidence, silenceEvidence } from "@rollcall/domain";
import type { HealthMetrics } from "../metrics.ts";
import type { HeldNode } from "../replica/held-node.ts";

/** Keeps the evidence of silence, and notices a node that returns so soon that its verdict is in doubt. */
export class SilenceVerdicts {
  readonly #instance: string;
  readonly #metrics: Pick<HealthMetrics, "returnedAtOnce">;

  constructor({
    instance,
    metrics,
  }: {
    readonly instance: string;
    readonly metrics: Pick<HealthMetrics, "returnedAtOnce">;
  }) {
    this.#instance = instance;
    this.#metrics = metrics;
  }

  /** The evidence of a declaration, at a time of the real clock. */
  evidenceOf({ timing, to, silentMs }: Due<HeldNode>, nowMs: number): SilenceEvidence {
    const { subject: node, thresholds } = timing;
    const { lastFrameAtMs } = node;
    return silenceEvidence({
      replica: this.#instance,
      to,
      lastReceivedAgoMs: lastFrameAtMs === null ? null : nowMs - lastFrameAtMs,
      silentMs,
      thresholdMs: to === "UNKNOWN" ? thresholds.unknownAfterMs : thresholds.unhealthyAfterMs,
      resolved: node.terms.resolved,
    });
  }

  /** A node is about to become HEALTHY. `nowMs` is of the real clock. */
  onReturn({ health, evidence, declaredAtMs, timing }: HeldNode, nowMs: number): void {
    if (health.state !== "UNHEALTHY" || evidence === null || declaredAtMs === null) return;
    if (nowMs - declaredAtMs <= timing.thresholds.unhealthyAfterMs) this.#metrics.returnedAtOnce();
  }
}
