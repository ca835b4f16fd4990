import { type Due, type SilenceEvidence, silenceEvidence } from "@rollcall/domain";
import type { HealthMetrics } from "../metrics.ts";
import type { LiveNode } from "./live-node.ts";

/**
 * Creates the evidence for health decisions, and counts nodes that return so soon that the decision was
 * doubtful.
 */
export class FailureEvidence {
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

  /** Return the evidence for a declaration. `nowMs` is real time, not observed time. */
  evidenceOf({ timing, to, silentMs }: Due<LiveNode>, nowMs: number): SilenceEvidence {
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

  /** Called before a node becomes HEALTHY. `nowMs` is real time. */
  onReturn({ health, evidence, declaredAtMs, timing }: LiveNode, nowMs: number): void {
    if (health.state !== "UNHEALTHY" || evidence === null || declaredAtMs === null) return;
    if (nowMs - declaredAtMs <= timing.thresholds.unhealthyAfterMs) this.#metrics.returnedAtOnce();
  }
}
