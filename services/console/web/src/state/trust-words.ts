import { type NodeTrust, TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";

const WORDS: Readonly<Partial<Record<TrustSource, string>>> = {
  [TrustSource.NONE]: "any server, in clear text",
  [TrustSource.SYSTEM]: "the operating system's certificate authorities",
  [TrustSource.FILE]: "the authorities in a file (--ca-file)",
  [TrustSource.ANNOUNCED]: "the authorities that the control plane announces (--ca-fingerprint)",
};

/** Describes which servers an agent trusts. */
export function trustWord(trust: Pick<NodeTrust, "source"> | undefined): string {
  return WORDS[trust?.source ?? TrustSource.UNSPECIFIED] ?? "not reported";
}
