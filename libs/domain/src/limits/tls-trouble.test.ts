import { describe, expect, it } from "@jest/globals";
import { explainTlsError } from "./tls-trouble.ts";

describe("explainTlsError()", () => {
  const cases: readonly [string, RegExp][] = [
    ["DEPTH_ZERO_SELF_SIGNED_CERT", /self-signed/],
    ["[unavailable] self-signed certificate", /self-signed/],
    ["Error: self-signed certificate in certificate chain", /not trusted/],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", /not trusted/],
    ["Last error: Error: unable to verify the first certificate.", /not trusted/],
    ["CERT_HAS_EXPIRED certificate has expired", /has expired/],
    ["certificate is not yet valid", /not valid yet/],
    ["Hostname/IP does not match certificate's altnames: Host: a", /does not cover the name/],
    ["EPROTO 00:error:0A00010B:SSL routines:ssl3_get_record:wrong version number", /no.* speak TLS/],
    ["tlsv13 alert certificate required", /only clients with a certificate/],
    ["tlsv1 alert protocol version", /supports no TLS version/],
  ];
  it.each(cases)("should explain %s", (text, problem) => {
    expect(explainTlsError(text)?.problem).toMatch(problem);
  });

  it("should leave other errors alone", () => {
    expect(explainTlsError("ECONNREFUSED connect ECONNREFUSED 127.0.0.1:7700")).toBeNull();
    expect(explainTlsError("node has been rejected: no certificate of burial")).toBeNull();
  });
});
