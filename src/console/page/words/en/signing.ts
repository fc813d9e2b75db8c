/** Words of the sign-in and setup pages. */

import { counted } from "../../lib/format.ts";
export const signing = {
  signIn: "Sign in",
  again: "Your session is over. What is on the page stays.",
  email: "E-mail",
  password: "Password",
  withKey: "Use a personal key instead",
  withPassword: "Use a password instead",
  key: "Personal key",
  keyHelp: "A key (phx_…) with user:read. It is not stored.",
  forgotten: "Forgotten? Whoever runs Flagkeep makes a new link:",
  failed: "That did not work.",
  failuresBefore: (count: number) =>
    `${counted(count, "failed sign-in", "failed sign-ins")} since you were last here.`,
  setupTitle: "Set up your account",
  setupHelp: (organization: string | undefined) =>
    `${organization ? `You are joining ${organization}. ` : ""}This link works once. Choose the password you will sign in with.`,
  name: "Name",
  create: "Set password and sign in",
  passwordHelp: "12 to 256 characters. A sentence is fine.",
  noToken: "This address lacks its secret part. Open the whole link as it was printed.",
  tagline: "Feature flags and events, on your own machine.",
};
