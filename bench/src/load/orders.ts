/** The response of a load process to one order. */
export type Answer<Outcome> =
  | { readonly ok: true; readonly outcome: Outcome }
  | { readonly ok: false; readonly message: string };

/**
 * Makes this process execute the orders of its parent. Each message is an order. The process executes and answers
 * them one after the other, and ends with its parent.
 */
export function answerOrders<Order, Outcome>(carryOut: (order: Order) => Promise<Outcome>): void {
  const answer = (message: Answer<Outcome>): void => {
    process.send?.(message);
  };
  process.on("disconnect", () => process.exit());
  process.on("message", (order: Order) => {
    carryOut(order).then(
      (outcome) => answer({ ok: true, outcome }),
      (error: unknown) => answer({ ok: false, message: String(error) }),
    );
  });
}
