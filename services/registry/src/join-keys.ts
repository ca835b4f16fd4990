import { type ConfigValues, checkedText, defineKeys, list, optional, text } from "@rollcall/config";
import { issuerProblem, keysUrlProblem } from "@rollcall/identity/oidc";

/**
 * The keys for what machines need to join: the agent's packages, and for machines of a Kubernetes cluster the service
 * accounts of their pods.
 */
export const JOIN_KEYS = defineKeys({
  "Join.PackagesDir": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "Directory with packages of the agent and their SHA256SUMS, as `make dist` makes them and releases contain " +
      "them. When set, the registry serves /join.sh, which installs the agent on a machine and joins it, and the " +
      "packages to machines with a valid join token; `rollcall token create` then prints one line that does all of " +
      "this. Only platforms with a package in the directory can join this way. The files can be replaced at any " +
      "time. Without this key, nothing of this is served.",
  },
  "Join.Kubernetes.Issuer": {
    schema: optional(checkedText("the URL of an issuer, such as https://login.example/realm", issuerProblem)),
    default: undefined,
    doc:
      "The issuer of a Kubernetes cluster's service-account tokens, exactly as in the tokens; `kubectl get --raw " +
      "/.well-known/openid-configuration` shows it. When set, a machine can use such a token instead of a join " +
      "token. It is approved if the token's pod runs on it; otherwise it waits for approval. Needs " +
      "Join.Kubernetes.ServiceAccounts.",
  },
  "Join.Kubernetes.Audience": {
    schema: text(),
    default: "rollcall-join",
    doc:
      "The audience that these tokens must have. A pod gets such a token from a projected volume, and no other " +
      "service accepts it.",
  },
  "Join.Kubernetes.ServiceAccounts": {
    schema: list(text({ pattern: /^[^/\s]+\/[^/\s]+$/, expects: "NAMESPACE/NAME" })),
    default: [] as readonly string[],
    doc: "The service accounts that machines can join with, each as NAMESPACE/NAME. Others are refused.",
  },
  "Join.Kubernetes.JWKSURL": {
    schema: optional(checkedText("a URL such as https://login.example/realm/keys", keysUrlProblem)),
    default: undefined,
    doc:
      "URL of the issuer's keys, instead of the one in /.well-known/openid-configuration: inside a cluster " +
      "https://kubernetes.default.svc/openid/v1/jwks.",
  },
  "Join.Kubernetes.CAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "PEM file with the certificate authorities for that server, instead of those of Node.js.",
  },
  "Join.Kubernetes.TokenFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc:
      "File with the token to send when fetching the keys: most clusters show them only to service accounts. " +
      "It is read each time, because Kubernetes renews it.",
  },
});

export type JoinConfig = ConfigValues<typeof JOIN_KEYS>;

/** Find contradictions between values that are valid individually. */
export function checkJoinConfig(
  config: JoinConfig,
): readonly { readonly path: keyof JoinConfig & string; readonly message: string }[] {
  const path = "Join.Kubernetes.ServiceAccounts" as const;
  const isMissing = config["Join.Kubernetes.Issuer"] !== undefined && config[path].length === 0;
  return isMissing ? [{ path, message: "must be set when Join.Kubernetes.Issuer is" }] : [];
}
