import { type ConfigValues, checkedText, defineKeys, list, optional, text } from "@rollcall/config";
import { issuerProblem, keysUrlProblem } from "@rollcall/identity/oidc";

/** How machines of a Kubernetes cluster join by their pods' service accounts. */
export const JOIN_KEYS = defineKeys({
  "Join.Kubernetes.Issuer": {
    schema: optional(checkedText("the URL of an issuer, such as https://login.example/realm", issuerProblem)),
    default: undefined,
    doc:
      "The issuer of a Kubernetes cluster's service-account tokens, exactly as they name it; `kubectl get --raw " +
      "/.well-known/openid-configuration` shows it. When set, a machine may give such a token in place of a join " +
      "token: it is approved when the token names it as its pod's node, and waits for approval otherwise. Needs " +
      "Join.Kubernetes.ServiceAccounts.",
  },
  "Join.Kubernetes.Audience": {
    schema: text(),
    default: "rollcall-join",
    doc:
      "The audience that these tokens must have. A pod gets such a token by a projected volume, and no other " +
      "service takes it.",
  },
  "Join.Kubernetes.ServiceAccounts": {
    schema: list(text({ pattern: /^[^/\s]+\/[^/\s]+$/, expects: "NAMESPACE/NAME" })),
    default: [] as readonly string[],
    doc: "The service accounts by which machines may join, each as NAMESPACE/NAME. Others are refused.",
  },
  "Join.Kubernetes.JWKSURL": {
    schema: optional(checkedText("a URL such as https://login.example/realm/keys", keysUrlProblem)),
    default: undefined,
    doc:
      "Where the issuer's keys are, in place of what it says by /.well-known/openid-configuration: inside a cluster " +
      "https://kubernetes.default.svc/openid/v1/jwks.",
  },
  "Join.Kubernetes.CAFile": {
    schema: optional(text()),
    default: undefined,
    doc: "File with the certificates, in PEM, that vouch for that server, in place of those that Node.js knows.",
  },
  "Join.Kubernetes.TokenFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "File with the token to send when the keys are fetched: most clusters show them to their service accounts " +
      "alone. It is read each time, since Kubernetes renews it.",
  },
});

/** Their values. */
export type JoinConfig = ConfigValues<typeof JOIN_KEYS>;

/** What is wrong with values that are each right. */
export function checkJoinConfig(
  config: JoinConfig,
): readonly { readonly path: keyof JoinConfig & string; readonly message: string }[] {
  const path = "Join.Kubernetes.ServiceAccounts" as const;
  const isMissing = config["Join.Kubernetes.Issuer"] !== undefined && config[path].length === 0;
  return isMissing ? [{ path, message: "must be set when Join.Kubernetes.Issuer is" }] : [];
}
