const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Eight random letters and digits, as insights are called in addresses. They are no secrets. */
export function newShortId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(8)), (n) => letters[n % letters.length]).join("");
}
