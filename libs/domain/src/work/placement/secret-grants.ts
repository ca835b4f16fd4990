/** A secret of a node, and who can use it. */
export interface NodeSecret {
  readonly name: string;
  /** OWNER/JOB each, for example "token:ci/web"; either part can end in "*". */
  readonly grants: readonly string[];
}

/** A job version that asks for secrets: its owner submitted it. */
export interface SecretUser {
  readonly owner: string;
  readonly job: string;
}

const GRANT = /^(\*|(?:token|user):[^\s,]{1,300})\/(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,62}\*?)$/;

/** Whether a text is OWNER/JOB, as a grant of a secret is written. */
export function isSecretGrant(text: string): boolean {
  return GRANT.test(text);
}

/** Whether a job can use a secret of a node: one grant must name both its owner and itself. */
export function canUseSecret(secrets: readonly NodeSecret[], name: string, { owner, job }: SecretUser): boolean {
  const grants = secrets.find((secret) => secret.name === name)?.grants ?? [];
  return grants.some((grant) => {
    // Names of jobs have no slash; owners can have one.
    const at = grant.lastIndexOf("/");
    return at >= 0 && covers(grant.slice(0, at), owner) && covers(grant.slice(at + 1), job);
  });
}

function covers(pattern: string, text: string): boolean {
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}
