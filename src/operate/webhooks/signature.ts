/** Signs requests of webhooks, so that receivers can check who sent them, and when. */

export const signatureHeader = "X-Flagkeep-Signature";

/**
 * The value of the header: `t=<seconds since 1970>,v1=<hex>`, where `v1` is the HMAC-SHA-256 of `<t>.<body>` with the secret of
 * the webhook.
 */
export function signature(secret: string, body: string, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1_000);
  const digest = new Bun.CryptoHasher("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${digest}`;
}
