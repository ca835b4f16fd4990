/** Other times than the usual ones, for tests and drills. In ms. */
export interface WebhookTiming {
  /** Between two looks at the log and the webhooks; 250. */
  readonly lookEveryMs: number;
  /** The first pause after a failure, which doubles; 1000. */
  readonly baseMs: number;
  /** The longest pause; five minutes. */
  readonly maxMs: number;
  /** See LeasedTaskOptions. */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}
