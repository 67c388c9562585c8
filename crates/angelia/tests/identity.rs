//! Who may: enrolment, issuers, egress, secrets; the real binary and, as an
//! oracle for signatures, PyJWT.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod identity {
    mod bounds;
    mod canary;
    mod changes;
    mod clock;
    mod egress;
    mod enroll;
    pub(crate) mod fixture;
    mod issuers;
    mod names;
    mod openapi;
    mod policy;
    mod provision;
    mod races;
    mod secrets;
    mod upgrade;
}
