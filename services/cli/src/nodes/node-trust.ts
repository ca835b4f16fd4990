import { type NodeInfo, TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";

/** How a node's agent recognizes the control plane, each part on a line; none where it does not report it. */
export function trustTexts(info: NodeInfo | undefined): readonly string[] {
  if (info?.trust === undefined) return [];
  const { source, authorities, serverName } = info.trust;
  const text = SOURCES[source];
  if (text === undefined) return [];
  return [serverName === "" ? text : `${text}, for the name ${serverName}`, ...authorities];
}

const SOURCES: Readonly<Partial<Record<TrustSource, string>>> = {
  [TrustSource.NONE]: "any server, in clear text",
  [TrustSource.SYSTEM]: "the authorities of its machine",
  [TrustSource.FILE]: "the authorities in a file (--ca-file)",
  [TrustSource.ANNOUNCED]: "the authorities that the control plane announces (--ca-fingerprint)",
};
