import { BrakeService, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import type { ReactNode } from "react";
import { PageLink } from "../../app/link.tsx";
import { clientOf, registry } from "../../live/clients.ts";
import { fleet } from "../../live/fleet.ts";
import { useObservable } from "../../live/observable.ts";
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

/** What waits for a decision, the gravest first. */
export function NeedsPerson() {
  const { membership, health, holds, processes, processesConnected } = useObservable(fleet.summary);
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
    const text = `The brake of ${group} is ${word}; ${formatCount(pending)} reactions are held back`;
    needs.push({ key: `brake ${group}`, tone: "bad", to: "/brake", text });
  }
  add(
    health.UNHEALTHY,
    "bad",
    "/nodes?approval=approved&health=unhealthy",
    "machine is unhealthy",
    "machines are unhealthy",
  );
  add(health.UNKNOWN, "warn", "/nodes?approval=approved&health=unknown", "machine is unknown", "machines are unknown");
  add(membership.PENDING, "warn", "/approvals", "machine waits for approval", "machines wait for approval");
  add(holds.HARDWARE, "warn", "/nodes?scheduling=ineligible", "machine lacks hardware", "machines lack hardware");
  add(
    holds.CONDITION,
    "warn",
    "/nodes?scheduling=ineligible",
    "machine reports a condition",
    "machines report conditions",
  );
  add(
    holds.IDENTITY,
    "bad",
    "/nodes?scheduling=ineligible",
    "machine shares its identity with another",
    "machines share their identities with others",
  );
  add(holds.FLAPPING, "warn", "/nodes?scheduling=ineligible", "machine flaps", "machines flap");
  const away = processes - processesConnected;
  add(
    away,
    "warn",
    "/control-plane",
    "process of the control plane is away",
    "processes of the control plane are away",
  );
  for (const text of status.data?.joining?.warnings ?? []) needs.push({ key: text, tone: "warn", to: "/join", text });
  if (needs.length === 0) {
    return (
      <Empty title="All is well">
        <p>Nothing waits for a decision.</p>
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
