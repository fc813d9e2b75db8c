const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Eight random letters and digits, for example for insight URLs. Not secret. */
export function newShortId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(8)), (n) => letters[n % letters.length]).join("");
}
