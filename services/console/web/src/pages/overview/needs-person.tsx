import { BrakeService, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { ReactNode } from "react";
import { PageLink } from "../../app/link.tsx";
import { clientOf, registry } from "../../live/clients.ts";
import { useSummary } from "../../live/fleet.ts";
import { useRead } from "../../live/queries.ts";
import { formatCount } from "../../state/units.ts";
import { enumWord, type Tone } from "../../state/words.ts";
import { Empty } from "../../ui/notices.tsx";
import { Shape } from "../../ui/state-mark.tsx";

interface Need {
  readonly key: string;
  readonly tone: Tone;
  readonly text: ReactNode;
  readonly to: string;
}

/** What needs attention, most serious first. */
export function NeedsPerson() {
  const { membership, health, holds, processes, processesConnected } = useSummary();
  const brake = useRead(["brake"], (signal) => clientOf(BrakeService).getBrake({}, { signal }), { on: ["brake."] });
  const status = useRead(["status"], (signal) => registry.getControlPlaneStatus({}, { signal }), {
    on: ["node.registered", "join.token"],
  });
  const needs: Need[] = [];
  const add = (count: number | undefined, tone: Tone, to: string, one: string, many: string) => {
    if (count !== undefined && count > 0) {
      needs.push({ key: many, tone, to, text: `${formatCount(count)} ${count === 1 ? one : many}` });
    }
  };
  for (const { group, state, pending } of brake.data?.brakes ?? []) {
    if (state === BrakeState.NORMAL || state === BrakeState.UNSPECIFIED) continue;
    const word = enumWord(BrakeStateSchema, state);
    const text = `The brake of ${group} is ${word}; ${formatCount(pending)} reactions are delayed`;
    needs.push({ key: `brake ${group}`, tone: "bad", to: "/brake", text });
  }
  add(
    health.UNHEALTHY,
    "bad",
    "/nodes?approval=approved&health=unhealthy",
    "machine is unhealthy",
    "machines are unhealthy",
  );
  add(
    health.UNKNOWN,
    "warn",
    "/nodes?approval=approved&health=unknown",
    "machine has unknown health",
    "machines have unknown health",
  );
  add(membership.PENDING, "warn", "/approvals", "machine is waiting for approval", "machines are waiting for approval");
  add(
    holds.HARDWARE,
    "warn",
    "/nodes?approval=approved&scheduling=ineligible",
    "machine lacks hardware",
    "machines lack hardware",
  );
  add(
    holds.CONDITION,
    "warn",
    "/nodes?approval=approved&scheduling=ineligible",
    "machine reports a condition",
    "machines report conditions",
  );
  add(
    holds.IDENTITY,
    "bad",
    "/nodes?approval=approved&scheduling=ineligible",
    "machine shares its identity with another",
    "machines share their identities with others",
  );
  add(
    holds.FLAPPING,
    "warn",
    "/nodes?approval=approved&scheduling=ineligible",
    "machine is flapping",
    "machines are flapping",
  );
  const away = processes - processesConnected;
  add(
    away,
    "warn",
    "/control-plane",
    "process of the control plane is missing",
    "processes of the control plane are missing",
  );
  for (const text of status.data?.joining?.warnings ?? []) needs.push({ key: text, tone: "warn", to: "/join", text });
  if (needs.length === 0) {
    return (
      <Empty title="No problems">
        <p>Nothing needs attention.</p>
      </Empty>
    );
  }
  return (
    <ul className="stack tight" style={{ listStyle: "none", padding: 0 }}>
      {needs.map(({ key, tone, text, to }) => (
        <li key={key} className="state" style={{ whiteSpace: "normal" }}>
          <Shape tone={tone} />
          <PageLink to={to}>{text}</PageLink>
        </li>
      ))}
    </ul>
  );
}
