//! When and how loudly a condition is spoken of in events and logs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventMode {
    Never,
    OnTransition,
    /// On transition, and again at intervals while the condition lasts.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Normal,
    Warning,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    Never,
    OnTransition,
    Always,
}

/// A line about a condition with Warning events is an error unless it is only for debugging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Info,
    Debug,
}

/// Each method changes only what it names, so they compose in the order they are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observability {
    pub events: EventMode,
    pub event_type: EventType,
    /// Instead of the condition's reason.
    pub event_reason: Option<String>,
    /// Instead of the condition's message.
    pub event_message: Option<String>,
    pub logs: LogMode,
    pub log_level: LogLevel,
    /// Instead of the condition's message.
    pub log_message: Option<String>,
}

impl Default for Observability {
    fn default() -> Self {
        Self {
            events: EventMode::OnTransition,
            event_type: EventType::Normal,
            event_reason: None,
            event_message: None,
            logs: LogMode::OnTransition,
            log_level: LogLevel::Info,
            log_message: None,
        }
    }
}

impl Observability {
    /// Progress: a Normal event and a line, once.
    pub fn info() -> Self {
        Self::default().as_info()
    }

    /// Something transient: a Warning event and an error line, once.
    pub fn warning() -> Self {
        Self::default().as_warning()
    }

    /// Something that lasts: a Warning event and an error line, repeated.
    pub fn error() -> Self {
        Self::default().as_error()
    }

    pub fn silent() -> Self {
        Self::default().as_silent()
    }

    pub fn as_info(self) -> Self {
        self.with_normal_event().with_info_log()
    }

    pub fn as_warning(self) -> Self {
        self.with_warning_event().with_error_log()
    }

    pub fn as_error(self) -> Self {
        self.with_recurring_warning_event().with_recurring_error_log()
    }

    /// The other name of [`Self::as_error`] in the original vocabulary.
    pub fn with_critical_error(self) -> Self {
        self.as_error()
    }

    pub fn as_silent(self) -> Self {
        Self { events: EventMode::Never, logs: LogMode::Never, ..self }
    }

    pub fn with_log(self, log_level: LogLevel) -> Self {
        Self { logs: LogMode::OnTransition, log_level, ..self }
    }

    pub fn with_error_log(self) -> Self {
        self.with_log(LogLevel::Error)
    }

    pub fn with_info_log(self) -> Self {
        self.with_log(LogLevel::Info)
    }

    pub fn with_debug_log(self) -> Self {
        self.with_log(LogLevel::Debug)
    }

    pub fn with_event(self, event_type: EventType) -> Self {
        Self { events: EventMode::OnTransition, event_type, ..self }
    }

    pub fn with_normal_event(self) -> Self {
        self.with_event(EventType::Normal)
    }

    pub fn with_warning_event(self) -> Self {
        self.with_event(EventType::Warning)
    }

    /// Repeats what would be said once; what is silent stays silent.
    pub fn with_recurring(mut self) -> Self {
        if self.events == EventMode::OnTransition {
            self.events = EventMode::Always;
        }
        if self.logs == LogMode::OnTransition {
            self.logs = LogMode::Always;
        }
        self
    }

    pub fn with_recurring_error_log(self) -> Self {
        Self { logs: LogMode::Always, log_level: LogLevel::Error, ..self }
    }

    pub fn with_recurring_warning_event(self) -> Self {
        Self { events: EventMode::Always, event_type: EventType::Warning, ..self }
    }

    /// No type leaves events as they are; it does not silence them.
    pub fn with_event_level(self, event_type: Option<EventType>) -> Self {
        match event_type {
            Some(event_type) => self.with_event(event_type),
            None => self,
        }
    }

    pub fn with_event_reason(mut self, reason: impl Into<String>) -> Self {
        self.event_reason = Some(reason.into());
        self
    }

    pub fn with_event_message(mut self, message: impl Into<String>) -> Self {
        self.event_message = Some(message.into());
        self
    }

    pub fn with_log_message(mut self, message: impl Into<String>) -> Self {
        self.log_message = Some(message.into());
        self
    }
}
