import { anonymousCalls, anonymousStreams, identifiedCallers } from "./call-scenarios.ts";
import { brokenFrames, floods, silence } from "./connection-scenarios.ts";
import { plainHttp } from "./http-scenarios.ts";
import { HEARTBEAT, LIST_NODES } from "./paths.ts";
import type { HostileKnowledge, Scenario } from "./scenario.ts";

/** Every kind of misuse, each on the ports to which it applies. */
export function hostileScenarios({ viewerToken }: HostileKnowledge): readonly Scenario[] {
  const viewer = { authorization: `Bearer ${viewerToken}` };
  return [
    ...silence(),
    ...brokenFrames("api"),
    ...brokenFrames("agents"),
    ...floods("api", LIST_NODES),
    ...floods("agents", HEARTBEAT),
    ...anonymousCalls(),
    ...anonymousStreams(),
    ...identifiedCallers(viewer),
    ...plainHttp(),
  ];
}
