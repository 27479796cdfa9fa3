//! One socket: connection ids, first packets, stateless answers.
