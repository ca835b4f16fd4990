import { setPriority } from "node:os";
import { answerOrders } from "../orders.ts";
import { Attacker, type AttackOutcome } from "./attacker.ts";
import type { HostileKnowledge, HostileTarget } from "./scenario.ts";
import { hostileScenarios } from "./scenarios.ts";

/** An order to this process: run one scenario for some time. */
export interface AttackOrder extends HostileKnowledge, HostileTarget {
  readonly scenario: string;
  readonly durationMs: number;
}

// Real attackers use other machines. Here the attackers share two cores with the server, so they get a lower
// priority.
setPriority(10);

answerOrders<AttackOrder, AttackOutcome>(async (order) => {
  const scenario = hostileScenarios(order).find(({ name }) => name === order.scenario);
  if (scenario === undefined) throw new Error(`unknown scenario ${order.scenario}`);
  return new Attacker(scenario, order).run(performance.now() + order.durationMs);
});
