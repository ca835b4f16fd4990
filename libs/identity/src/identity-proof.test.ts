import { describe, expect, it } from "@jest/globals";
import {
  generateKeyPair,
  keyFingerprint,
  keyPairFromPem,
  privateKeyToPem,
  signProof,
  verifyProof,
} from "./identity-proof.ts";

const TEXT = "rollcall-proof-v1\n/service/Method\ncluster\nnode-1\nbm9uY2U";

describe("verifyProof()", () => {
  const { publicKey, privateKey } = generateKeyPair();
  const signature = signProof(privateKey, TEXT);

  it("should accept what the key's holder signed", () => {
    expect(publicKey).toHaveLength(32);
    expect(signature).toHaveLength(64);
    expect(verifyProof(publicKey, TEXT, signature)).toBe(true);
  });

  it("should refuse another text, another key and a changed signature", () => {
    expect(verifyProof(publicKey, `${TEXT} `, signature)).toBe(false);
    expect(verifyProof(generateKeyPair().publicKey, TEXT, signature)).toBe(false);
    const changed = signature.slice();
    changed[0] = (changed[0] ?? 0) ^ 1;
    expect(verifyProof(publicKey, TEXT, changed)).toBe(false);
  });

  it("should refuse malformed keys and signatures without throwing", () => {
    for (const length of [0, 31, 33, 4_096]) {
      expect(verifyProof(new Uint8Array(length), TEXT, signature)).toBe(false);
      expect(verifyProof(publicKey, TEXT, new Uint8Array(length))).toBe(false);
    }
    expect(verifyProof(new Uint8Array(32).fill(0xff), TEXT, signature)).toBe(false);
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
    // The same as: head -c 32 /dev/zero | openssl dgst -sha256 -binary | base64 | tr +/ -_ | tr -d =
    const zeros = "SHA256:Zmh6rfhivXdsj8GLjp-OIAiXFIVu4jOzkCpZHQ1fKSU";
    expect(keyFingerprint(new Uint8Array(32))).toBe(zeros);
  });
});
