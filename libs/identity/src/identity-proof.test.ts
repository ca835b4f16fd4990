import { describe, expect, it } from "@jest/globals";
import {
  generateKeyPair,
  keyFingerprint,
  keyPairFromPem,
  privateKeyToPem,
  signProof,
  verifyProof,
  verifyProofAside,
} from "./identity-proof.ts";

const TEXT = "rollcall-proof-v1\n/service/Method\ncluster\nnode-1\nbm9uY2U";

const VERIFIERS = [
  ["verifyProof()", verifyProof],
  ["verifyProofAside()", verifyProofAside],
] as const;

describe.each(VERIFIERS)("%s", (_, verifies) => {
  const { publicKey, privateKey } = generateKeyPair();
  const signature = signProof(privateKey, TEXT);

  it("should accept what the key's holder signed", async () => {
    expect(publicKey).toHaveLength(32);
    expect(signature).toHaveLength(64);
    expect(await verifies(publicKey, TEXT, signature)).toBe(true);
  });

  it("should refuse another text, another key and a changed signature", async () => {
    expect(await verifies(publicKey, `${TEXT} `, signature)).toBe(false);
    expect(await verifies(generateKeyPair().publicKey, TEXT, signature)).toBe(false);
    const changed = signature.slice();
    changed[0] = (changed[0] ?? 0) ^ 1;
    expect(await verifies(publicKey, TEXT, changed)).toBe(false);
  });

  it("should refuse malformed keys and signatures without throwing", async () => {
    for (const length of [0, 31, 33, 4_096]) {
      expect(await verifies(new Uint8Array(length), TEXT, signature)).toBe(false);
      expect(await verifies(publicKey, TEXT, new Uint8Array(length))).toBe(false);
    }
    expect(await verifies(new Uint8Array(32).fill(0xff), TEXT, signature)).toBe(false);
  });
});

describe("keyPairFromPem()", () => {
  it("should read back what privateKeyToPem() wrote", () => {
    const pair = generateKeyPair();
    const again = keyPairFromPem(privateKeyToPem(pair.privateKey));
    expect(again.publicKey).toEqual(pair.publicKey);
    expect(verifyProof(pair.publicKey, TEXT, signProof(again.privateKey, TEXT))).toBe(true);
  });

  it("should refuse other keys and other texts", () => {
    expect(() => keyPairFromPem("no key")).toThrow();
  });
});

describe("keyFingerprint()", () => {
  it("should be SHA-256 in base64url", () => {
    // Computed with: head -c 32 /dev/zero | openssl dgst -sha256 -binary | base64 | tr +/ -_ | tr -d
    // =
    const zeros = "SHA256:Zmh6rfhivXdsj8GLjp-OIAiXFIVu4jOzkCpZHQ1fKSU";
    expect(keyFingerprint(new Uint8Array(32))).toBe(zeros);
  });
});
