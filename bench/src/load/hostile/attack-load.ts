import { setPriority } from "node:os";
import { answerOrders } from "../orders.ts";
import { Attacker, type AttackOutcome } from "./attacker.ts";
import type { HostileKnowledge, HostileTarget } from "./scenario.ts";
import { hostileScenarios } from "./scenarios.ts";

/** What is ordered from this process: one scenario for some time. */
export interface AttackOrder extends HostileKnowledge, HostileTarget {
  readonly scenario: string;
  readonly durationMs: number;
}

// Attackers sit on other machines. Here they share two cores with the server, and must not win them by being many.
setPriority(10);

answerOrders<AttackOrder, AttackOutcome>(async (order) => {
  const scenario = hostileScenarios(order).find(({ name }) => name === order.scenario);
  if (scenario === undefined) throw new Error(`no scenario is called ${order.scenario}`);
  return new Attacker(scenario, order).run(performance.now() + order.durationMs);
});
