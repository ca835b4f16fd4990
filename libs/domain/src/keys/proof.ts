/**
 * The text that an agent signs, as UTF-8, to prove that it holds its node's key. It contains the method and the
 * cluster, so a proof for one call or cluster is not valid for another. The nonce comes from the server, so that no
 * clock is needed and no proof can be used twice.
 *
 * @param proof `method` is the full path, for example `/rollcall.registry.v1.RegistryService/RegisterNode`; `nonce` is
 *   the server's nonce, as bytes or already as base64url without padding. No value may contain a line break: callers
 *   check the node id and the nonce first.
 */
export function proofText(proof: {
  readonly method: string;
  readonly clusterId: string;
  readonly nodeId: string;
  readonly nonce: string | Uint8Array;
}): string {
  const nonce = typeof proof.nonce === "string" ? proof.nonce : toBase64Url(proof.nonce);
  return `rollcall-proof-v1\n${proof.method}\n${proof.clusterId}\n${proof.nodeId}\n${nonce}`;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * Encode bytes as base64url. This is written by hand because this package uses no platform API, and JavaScript itself
 * has no encoder.
 */
function toBase64Url(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let bitCount = 0;
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    bitCount += 8;
    while (bitCount >= 6) {
      bitCount -= 6;
      text += ALPHABET.charAt((bits >> bitCount) & 63);
    }
    bits &= (1 << bitCount) - 1;
  }
  return bitCount === 0 ? text : text + ALPHABET.charAt((bits << (6 - bitCount)) & 63);
}
