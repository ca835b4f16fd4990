import type { ButtonHTMLAttributes } from "react";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: "primary" | "danger" | "plain" | undefined;
  readonly small?: boolean | undefined;
  readonly icon?: boolean | undefined;
}

export function Button({ look, small, icon, className, ...rest }: ButtonProps) {
  const classes = ["button", look, small && "small", icon && "icon", className].filter(Boolean).join(" ");
  return <button type="button" className={classes} {...rest} />;
}
