/** An issuer with which people can log in, as clients are told. */
export interface LoginIssuer {
  /** Its URL. */
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  /** Scopes to ask for, divided by blanks. */
  readonly scopes: string;
}
