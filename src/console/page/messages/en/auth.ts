/** Messages of the sign-in and setup pages. */

import { counted } from "../../lib/format.ts";
export const signing = {
  signIn: "Sign in",
  again: "Your session expired. Sign in to continue; unsaved changes are kept.",
  email: "E-mail",
  password: "Password",
  withKey: "Use a personal key instead",
  withPassword: "Use a password instead",
  key: "Personal key",
  keyHelp: "A key (phx_…) with user:read. It is not stored.",
  forgotPassword: "Forgot your password? Ask your admin to run:",
  failed: "Something went wrong",
  failuresBefore: (count: number) =>
    `${counted(count, "failed sign-in", "failed sign-ins")} since you were last here.`,
  setupTitle: "Set up your account",
  setupHelp: (organization: string | undefined, isFirst: boolean) =>
    `${isFirst ? "Create the owner account. " : organization ? `You are joining ${organization}. ` : ""}This link works once. Choose the password you will sign in with.`,
  name: "Name",
  create: "Set password and sign in",
  passwordHelp: "12 to 256 characters. A sentence is fine.",
  noToken: "This link is incomplete. Copy the whole link, including the part after #.",
  tagline: "Feature flags and events, on your own machine.",
};
