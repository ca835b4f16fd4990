import { createHash } from "node:crypto";
import { nkeys } from "@nats-io/transport-node";

/** A server configuration with one operator and one account, and a .creds file of one of its users. */
export interface JwtSetup {
  readonly config: string;
  readonly credentials: string;
}

/**
 * Create the keys and tokens that a server and a user need for JWT authentication, as the tool `nsc`
 * does.
 */
export function makeJwtSetup(): JwtSetup {
  const operator = nkeys.createOperator();
  const account = nkeys.createAccount();
  const user = nkeys.createUser();
  const operatorJwt = sign(operator, operator, "operator", {});
  const accountJwt = sign(operator, account, "account", {
    limits: { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 },
  });
  const userJwt = sign(account, user, "user", { subs: -1, data: -1, payload: -1 });
  return {
    config: [
      `operator: ${operatorJwt}`,
      "resolver: MEMORY",
      `resolver_preload: { ${account.getPublicKey()}: ${accountJwt} }`,
    ].join("\n"),
    credentials: [
      block("NATS USER JWT", userJwt),
      "************************* IMPORTANT *************************",
      block("USER NKEY SEED", Buffer.from(user.getSeed()).toString()),
    ].join("\n"),
  };
}

function sign(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, kind: string, claims: object): string {
  const unsigned = {
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name: `test ${kind}`,
    sub: subject.getPublicKey(),
    nats: { ...claims, type: kind, version: 2 },
  };
  const jti = createHash("sha256").update(JSON.stringify(unsigned)).digest("hex");
  const body = [
    { typ: "JWT", alg: "ed25519-nkey" },
    { jti, ...unsigned },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${body}.${Buffer.from(issuer.sign(Buffer.from(body))).toString("base64url")}`;
}

function block(title: string, content: string): string {
  return `-----BEGIN ${title}-----\n${content}\n------END ${title}------\n`;
}
