import { accountIssuerUnavailable, accountTokenInvalid, type GivenAccount, judgeAccount } from "@rollcall/domain";
import { describeError, reasonOf } from "@rollcall/errors";
import { openOidcVerifier } from "@rollcall/identity/oidc";
import type { RegistryProcess } from "../registry-process.ts";

/** Reads tokens of Kubernetes service accounts that machines join with. */
export interface ServiceAccounts {
  /** Whether a text is meant to be such a token; it cannot be a join token then. */
  isToken(text: string): boolean;
  judge(text: string, nodeId: string): Promise<GivenAccount>;
}

/** A JSON Web Token, which a join token never looks like. */
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Create the reader of one registry; null where no issuer is configured. */
export function createServiceAccounts({
  config,
  clock,
  log,
}: Pick<RegistryProcess, "config" | "clock" | "log">): ServiceAccounts | null {
  const issuer = config["Join.Kubernetes.Issuer"];
  if (issuer === undefined) return null;
  const audience = config["Join.Kubernetes.Audience"];
  const admitted = config["Join.Kubernetes.ServiceAccounts"];
  const verify = openOidcVerifier({
    issuer: {
      ...{ issuer, audience },
      jwksUrl: config["Join.Kubernetes.JWKSURL"] ?? null,
      caFile: config["Join.Kubernetes.CAFile"] ?? null,
      tokenFile: config["Join.Kubernetes.TokenFile"] ?? null,
    },
    clock,
    log,
  });
  return {
    isToken: (text) => JWT.test(text),
    judge: async (text, nodeId) => {
      try {
        const verdict = await verify(text);
        switch (verdict.kind) {
          case "valid":
            return judgeAccount(verdict.claims, admitted, nodeId);
          case "unsigned":
            return accountTokenInvalid(nodeId, `it is not signed by ${issuer}`);
          case "expired":
            return accountTokenInvalid(nodeId, "it has expired");
          case "not-for-here":
            return accountTokenInvalid(nodeId, verdict.why);
        }
      } catch (error) {
        if (reasonOf(error) !== "ISSUER_UNAVAILABLE") throw error;
        return accountIssuerUnavailable(nodeId, describeError(error).message);
      }
    },
  };
}
