import { accountIssuerUnavailable, accountTokenInvalid, evaluateAccount, type GivenAccount } from "@rollcall/domain";
import { describeError, reasonOf } from "@rollcall/errors";
import { openOidcVerifier } from "@rollcall/identity/oidc";
import type { RegistryProcess } from "../registry-process.ts";

/** Verifies the tokens of Kubernetes service accounts that machines present to join. */
export interface ServiceAccounts {
  /** Whether a string is a service account's token and therefore not a join token. */
  isToken(text: string): boolean;
  evaluate(text: string, nodeId: string): Promise<GivenAccount>;
}

/** The form of a JSON Web Token, which no join token has. */
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Create the verifier of one registry; null when no issuer is configured. */
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
    evaluate: async (text, nodeId) => {
      try {
        const decision = await verify(text);
        switch (decision.kind) {
          case "valid":
            return evaluateAccount(decision.claims, admitted, nodeId);
          case "unsigned":
            return accountTokenInvalid(nodeId, `it is not signed by ${issuer}`);
          case "expired":
            return accountTokenInvalid(nodeId, "it has expired");
          case "not-for-here":
            return accountTokenInvalid(nodeId, decision.why);
        }
      } catch (error) {
        if (reasonOf(error) !== "ISSUER_UNAVAILABLE") throw error;
        return accountIssuerUnavailable(nodeId, describeError(error).message);
      }
    },
  };
}
