import { BrakeService, BrakeState, BrakeStateSchema } from "@rollcall/api/rollcall/admin/v1/brake_pb";
import { UpkeepOutcome } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { PageLink } from "../../app/link.tsx";
import { clientOf, registry } from "../../live/clients.ts";
import { useSummary } from "../../live/fleet.ts";
import { EVERY_EVENT, RARE_MS, useRead } from "../../live/queries.ts";
import { formatCount } from "../../state/units.ts";
import { enumWord } from "../../state/words.ts";
import { Read } from "../../ui/notices.tsx";
import { Facts } from "../../ui/panel.tsx";
import { StateMark } from "../../ui/state-mark.tsx";

/** The health of the control plane itself, in a few lines. */
export function OwnHealth() {
  const { processes, processesConnected } = useSummary();
  const status = useRead(["status"], (signal) => registry.getControlPlaneStatus({}, { signal }), {
    on: EVERY_EVENT,
    gatherMs: RARE_MS,
  });
  const brake = useRead(["brake"], (signal) => clientOf(BrakeService).getBrake({}, { signal }), { on: ["brake."] });
  const held = brake.data?.brakes.find(({ state }) => state !== BrakeState.NORMAL);
  return (
    <Read from={status} lines={3}>
      {({ log, relay, upkeep, clusterId }) => {
        const failed = upkeep.filter(({ outcome }) => outcome === UpkeepOutcome.FAILED).map(({ name }) => name);
        return (
          <Facts
            of={[
              ["Cluster", <code key="id">{clusterId}</code>],
              [
                "Processes",
                <StateMark
                  key="processes"
                  word={processesConnected === processes ? "CONNECTED" : "DISCONNECTED"}
                  title={`${processesConnected} of ${processes}`}
                />,
              ],
              [
                "Brake",
                brake.data === undefined ? (
                  ""
                ) : (
                  <PageLink key="brake" to="/brake">
                    <StateMark word={enumWord(BrakeStateSchema, held?.state ?? BrakeState.NORMAL)} />
                  </PageLink>
                ),
              ],
              ["Revision", formatCount(Number(log?.headRevision ?? 0n))],
              ["Relay", relay?.configured ? `${formatCount(Number(relay.lag))} revisions behind` : "not configured"],
              ["Upkeep", failed.length === 0 ? "succeeded" : `failed: ${failed.join(", ")}`],
            ]}
          />
        );
      }}
    </Read>
  );
}
